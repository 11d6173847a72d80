//! Build caches: the user's own, which commands share with every other build of that user, or one set a root, which nobody
//! else builds from. What a build writes into a shared cache another build may run: see `docs/security.md`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Profile;

/// Whose build caches commands write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caches {
    /// The user's own.
    #[default]
    Shared,
    /// One set for each root; the user's own can only be read.
    Private,
}

/// The user's own, below the home directory.
const OWN: &[&str] = &[
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".npm",
    ".local/share/pnpm",
    ".yarn",
    ".bun/install",
    ".gradle",
    ".m2/repository",
    ".ivy2",
    ".nuget/packages",
    "go/pkg",
];

/// The sets of the roots, below the home directory.
const SETS: &str = ".cache/agentd/roots";

/// Where programs look for a cache that was moved, and where it is in a set. Programs that know no such variable find their
/// usual cache and cannot write it.
const MOVED: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", "cache"),
    ("CARGO_HOME", "cargo"),
    ("npm_config_cache", "npm"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("GOMODCACHE", "go/mod"),
    ("GOCACHE", "go/build"),
    ("GRADLE_USER_HOME", "gradle"),
    ("NUGET_PACKAGES", "nuget"),
];

/// Caches that are moved because the user has none where they usually are, and the home directory cannot be written.
const MISSING: &[(&str, &str, &str)] = &[
    ("npm_config_cache", ".npm", ".cache/npm"),
    ("CARGO_HOME", ".cargo", ".cache/cargo"),
];

/// What commands of this profile may write, which need not exist.
pub(super) fn writable(profile: &Profile) -> Vec<PathBuf> {
    let Some(home) = &profile.home else { return Vec::new() };
    match profile.caches {
        Caches::Shared => OWN.iter().map(|cache| home.join(cache)).collect(),
        Caches::Private => set(profile, home).into_iter().collect(),
    }
}

/// Makes the root's set if there is none yet. Without it commands have no cache.
pub(super) fn make(profile: &Profile) {
    use std::os::unix::fs::DirBuilderExt;
    let Some(home) = profile.home.as_ref().filter(|_| profile.caches == Caches::Private) else {
        return;
    };
    if let Some(set) = set(profile, home) {
        // Where it cannot be made the command says so when it needs it.
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(set);
    }
}

/// Variables that lead programs to the caches they may write.
pub(super) fn variables(profile: &Profile) -> Vec<(String, String)> {
    let Some(home) = &profile.home else { return Vec::new() };
    let variable = |name: &str, place: PathBuf| (name.to_owned(), place.display().to_string());
    match profile.caches {
        Caches::Shared => {
            let missing = MISSING.iter().filter(|(_, usual, _)| !home.join(usual).exists());
            missing
                .map(|(name, _, place)| variable(name, home.join(place)))
                .collect()
        }
        Caches::Private => {
            let set = set(profile, home);
            let moved = |set: PathBuf| MOVED.iter().map(move |(name, place)| variable(name, set.join(place)));
            set.into_iter().flat_map(moved).collect()
        }
    }
}

/// The set of the first root. Its name says nothing of the root to other commands.
fn set(profile: &Profile, home: &Path) -> Option<PathBuf> {
    use std::fmt::Write;
    let root = profile.roots.first()?;
    let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
    let mut name = String::new();
    for byte in digest.iter().take(8) {
        // Writing to a text cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    Some(home.join(SETS).join(name))
}
