//! Files below a root whose names say that they hold secrets, for commands that read a tree as a whole.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::target::names::is_secret;

/// Entries looked at; about a tenth of a second. Larger trees are looked at from the top down so far.
const ENTRIES_LIMIT: usize = 100_000;

/// Files hidden at most; each costs a mount.
const FOUND_LIMIT: usize = 512;

/// Directories whose files others have published already, or that hold no files by name.
const SKIPPED: &[&str] = &["node_modules", "objects"];

/// What was found.
pub(super) struct Found {
    pub(super) paths: Vec<PathBuf>,
    /// The whole tree was looked at.
    pub(super) complete: bool,
}

/// Looks through the tree, breadth first, following no link.
pub(super) fn below(root: &Path) -> Found {
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
            if looked > ENTRIES_LIMIT || found.paths.len() >= FOUND_LIMIT {
                found.complete = false;
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                ahead.push_back(entry.path());
            } else if kind.is_file() && is_secret(Path::new(&name)) {
                found.paths.push(entry.path());
            }
        }
    }
    found
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
        let mut paths = below(&root).paths;
        paths.sort();
        assert_eq!(paths, [root.join(".env"), root.join("a/b/server.pem")]);
        Ok(())
    }
}
