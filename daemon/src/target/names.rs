//! Names that need a closer look: files that usually hold secrets, and directories whose files are run or configure the
//! daemon. Only names are looked at, never contents. Case and invisible characters are ignored, because some file systems
//! ignore them too and a false alarm only asks.

use std::ffi::OsStr;
use std::path::{Component, Path};

/// Prefixes and suffixes of file names that usually hold secrets.
const SECRET_PREFIXES: &[&str] = &[".env", "id_", "credentials"];
const SECRET_SUFFIXES: &[&str] = &[".pem", ".key"];
const SECRET_NAMES: &[&str] = &[".netrc", ".npmrc"];

/// Directories inside a root that may be read like others but written only with a person's consent.
const PROTECTED: &[&str] = &[".git", ".agent"];

/// Whether the last component of `path` is a name that usually holds secrets.
pub fn is_secret(path: &Path) -> bool {
    let Some(name) = path.file_name().map(plain) else {
        return false;
    };
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a component of `path` is `.git` or `.agent`.
pub fn is_protected(path: &Path) -> bool {
    path.components().any(|component| match component {
        Component::Normal(name) => PROTECTED.contains(&plain(name).as_str()),
        _ => false,
    })
}

/// The name as a case-insensitive file system that skips ignorable characters would compare it.
fn plain(name: &OsStr) -> String {
    let ignorable =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    name.to_string_lossy()
        .chars()
        .filter(|c| !ignorable(*c))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_hold_secrets_are_known_in_any_case() {
        for name in [
            ".env",
            ".env.local",
            "a/b/server.pem",
            "KEY.PEM",
            "tls.key",
            "id_rsa",
            ".netrc",
            ".npmrc",
            "credentials.json",
        ] {
            assert!(is_secret(Path::new(name)), "{name}");
        }
        for name in [
            "environment.rs",
            "env",
            "keys.rs",
            "monkey",
            "a.pem/readme",
            ".env/bin/python",
            "src/main.rs",
        ] {
            assert!(!is_secret(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn git_and_agent_directories_are_protected_however_they_are_spelt() {
        for path in [
            ".git/config",
            "/r/.git",
            "a/.GIT/hooks/x",
            ".agent/config.toml",
            ".g\u{200c}it/config",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [".gitignore", ".github/workflows/ci.yml", "git/config", ".agents/x"] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
