//! One walk through the tree below a root, for what of it must be hidden or kept as it is: files whose names say that they
//! hold secrets, for commands that read a tree as a whole; repositories, for commands that write in it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::target::names::is_secret;

/// Entries looked at; about a tenth of a second. Larger trees are looked at from the top down so far.
const ENTRIES_LIMIT: usize = 100_000;

/// Files hidden at most; each costs a mount.
const SECRETS_LIMIT: usize = 512;

/// Repositories kept as they are at most; each costs about seven mounts, a tenth of a millisecond together.
const REPOSITORIES_LIMIT: usize = 128;

/// What git looks for in each directory on its way up.
pub(super) const GIT: &str = ".git";

/// A directory whose files others have published already.
const PUBLISHED: &str = "node_modules";

/// A directory of git's that holds no files by name.
const OBJECTS: &str = "objects";

/// What a walk looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Files with names of secrets.
    Secrets,
    /// What is called `.git`, of whatever kind.
    Repositories,
}

/// What was found.
pub(super) struct Found {
    pub(super) paths: Vec<PathBuf>,
    /// The whole tree was looked at.
    pub(super) complete: bool,
}

/// Looks through the tree, breadth first, following no link.
pub(super) fn below(root: &Path, wanted: Wanted) -> Found {
    let mut found = Found {
        paths: Vec::new(),
        complete: true,
    };
    let mut ahead = VecDeque::from([root.to_owned()]);
    let mut looked = 0;
    while let Some(dir) = ahead.pop_front() {
        // What cannot be read here cannot be read by the command either.
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            looked += 1;
            if looked > ENTRIES_LIMIT || found.paths.len() >= wanted.limit() {
                found.complete = false;
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if wanted.is(&name, kind) {
                found.paths.push(entry.path());
            } else if kind.is_dir() && wanted.goes_below(&name) {
                ahead.push_back(entry.path());
            }
        }
    }
    found
}

/// Whether git takes it for the repository of the directory it is in. Some file systems do not tell cases apart.
pub(super) fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(GIT)
}

impl Wanted {
    fn limit(self) -> usize {
        match self {
            Self::Secrets => SECRETS_LIMIT,
            Self::Repositories => REPOSITORIES_LIMIT,
        }
    }

    fn is(self, name: &OsStr, kind: std::fs::FileType) -> bool {
        match self {
            Self::Secrets => kind.is_file() && is_secret(Path::new(name)),
            Self::Repositories => is_git(name),
        }
    }

    fn goes_below(self, name: &OsStr) -> bool {
        name != PUBLISHED && (self == Self::Repositories || name != OBJECTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_however_deep_they_lie_and_links_are_not_followed() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a/b"))?;
        std::fs::create_dir_all(root.join("node_modules/x"))?;
        std::fs::write(dir.path().join("id_outside"), "x")?;
        for name in [".env", "a/b/server.pem", "a/plain.txt", "node_modules/x/test.pem"] {
            std::fs::write(root.join(name), "x")?;
        }
        std::os::unix::fs::symlink(dir.path(), root.join("out"))?;
        let mut paths = below(&root, Wanted::Secrets).paths;
        paths.sort();
        assert_eq!(paths, [root.join(".env"), root.join("a/b/server.pem")]);
        Ok(())
    }

    #[test]
    fn repositories_are_found_of_whatever_kind_and_not_looked_through() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in [".git/a", "objects/x/.GIT", "plain"] {
            std::fs::create_dir_all(dir.path().join(name))?;
        }
        for name in ["plain/.git", ".git/a/.git", "plain/x.git"] {
            std::fs::write(dir.path().join(name), "gitdir: /x")?;
        }
        let mut paths = below(dir.path(), Wanted::Repositories).paths;
        paths.sort();
        let expected = [".git", "objects/x/.GIT", "plain/.git"].map(|name| dir.path().join(name));
        assert_eq!(paths, expected);
        Ok(())
    }
}
