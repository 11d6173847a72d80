//! What is in a directory, as `.gitignore` files let a person see it, newest first. Rules are taken from the root down to
//! the directory and below, never from above the root or from the user's own git configuration.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};

use super::resolve::Resolved;
use super::{Target, TargetError};

/// Entries looked at before a listing is cut: enough for a large source tree, done in well under a second.
const VISIT_LIMIT: usize = 50_000;

/// A directory that only git itself cares for.
const GIT: &str = ".git";

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Relative to the directory that is listed.
    pub path: PathBuf,
    /// What it is.
    pub kind: ListedKind,
    /// When its content last changed.
    pub modified: SystemTime,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedKind {
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Link,
    /// Anything else.
    File,
}

/// The entries of a directory, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// At most [`VISIT_LIMIT`] of them.
    pub entries: Vec<Listed>,
    /// There are more.
    pub cut: bool,
    /// The directory is ignored itself, so everything in it was listed.
    pub ignored: bool,
}

impl Target {
    /// Lists a directory down to `depth` levels, 1 being its own entries.
    ///
    /// # Errors
    /// It does not exist, is no directory, or cannot be read.
    pub fn list(&self, resolved: &Resolved, depth: usize) -> Result<Listing, TargetError> {
        self.open_directory(resolved)?;
        std::fs::read_dir(&resolved.path).map_err(|error| TargetError::io(resolved.shown.as_str(), error))?;
        let root = resolved
            .root
            .and_then(|index| self.roots().get(index))
            .map(|root| root.path.as_path());
        let top = root.unwrap_or(&resolved.path);
        let (mut listing, reached) = walk(top, &resolved.path, depth);
        if !reached {
            (listing, _) = walk(&resolved.path, &resolved.path, depth);
            listing.ignored = true;
        }
        listing.entries.sort_by(|one, other| {
            other
                .modified
                .cmp(&one.modified)
                .then_with(|| one.path.cmp(&other.path))
        });
        Ok(listing)
    }
}

/// Walks from `top`, whose rules count first, straight to `dir` and then everything below it. Also says whether `dir` was
/// reached, which it is not if a rule ignores it.
fn walk(top: &Path, dir: &Path, depth: usize) -> (Listing, bool) {
    let above = dir.strip_prefix(top).map_or(0, |rest| rest.components().count());
    let wanted = dir.to_path_buf();
    let lists_git = dir.components().any(|component| component.as_os_str() == GIT);
    let walk = WalkBuilder::new(top)
        .hidden(false)
        .parents(false)
        .ignore(true)
        .git_ignore(true)
        .git_exclude(true)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .max_depth(Some(above + depth))
        .filter_entry(move |entry| {
            let on_the_way = wanted.starts_with(entry.path());
            let below = entry.path().starts_with(&wanted);
            on_the_way || (below && (lists_git || entry.file_name() != GIT))
        })
        .build();
    let mut listing = Listing::default();
    let mut reached = false;
    // What cannot be read is left out, as in any listing; the directory itself was read before.
    for entry in walk.filter_map(Result::ok) {
        match entry.path().strip_prefix(dir) {
            Ok(path) if path.as_os_str().is_empty() => reached = true,
            Ok(path) if listing.entries.len() < VISIT_LIMIT => listing.entries.push(listed(&entry, path)),
            Ok(_) => {
                listing.cut = true;
                break;
            }
            Err(_) => {}
        }
    }
    (listing, reached)
}

fn listed(entry: &DirEntry, path: &Path) -> Listed {
    let kind = match entry.file_type() {
        Some(kind) if kind.is_dir() => ListedKind::Directory,
        Some(kind) if kind.is_symlink() => ListedKind::Link,
        _ => ListedKind::File,
    };
    let modified = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
    Listed {
        path: path.to_path_buf(),
        kind,
        modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::target::TargetSpec;

    fn names(target: &Target, dir: &str, depth: usize) -> (Vec<String>, bool) {
        let listing = target.list(&target.resolve(dir).unwrap(), depth).unwrap();
        let mut names: Vec<String> = listing
            .entries
            .iter()
            .map(|entry| entry.path.display().to_string())
            .collect();
        names.sort();
        (names, listing.ignored)
    }

    #[test]
    fn ignore_rules_hold_from_the_root_down_and_not_from_above() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        for path in ["src/deep", "build/out", ".git/objects", ".github"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in [
            "a.rs",
            "a.log",
            "src/b.rs",
            "src/b.log",
            "src/deep/c.rs",
            "build/out/x",
            ".env",
            "kept.txt",
        ] {
            std::fs::write(root.join(path), "").unwrap();
        }
        std::fs::write(dir.path().join(".gitignore"), "kept.txt\n").unwrap();
        std::fs::write(root.join(".gitignore"), "*.log\n/build/\n").unwrap();
        let target = Target::open(TargetSpec {
            roots: vec![root.clone()],
            cwd: root,
            ..TargetSpec::default()
        })
        .unwrap();
        assert_eq!(
            names(&target, ".", 1).0,
            [".env", ".github", ".gitignore", "a.rs", "kept.txt", "src"]
        );
        assert_eq!(names(&target, "src", 1), (vec!["b.rs".into(), "deep".into()], false));
        assert_eq!(names(&target, "src", 2).0, ["b.rs", "deep", "deep/c.rs"]);
        assert_eq!(names(&target, "build", 2), (vec!["out".into(), "out/x".into()], true));
        assert_eq!(names(&target, ".git", 1).0, ["objects"]);
    }

    #[test]
    fn the_newest_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        for (name, age) in [("old", 100), ("new", 10), ("older", 1000)] {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(10_000 - age))
                .unwrap();
        }
        let spec = TargetSpec {
            roots: vec![dir.path().into()],
            cwd: dir.path().into(),
            ..TargetSpec::default()
        };
        let target = Target::open(spec).unwrap();
        let listing = target.list(&target.resolve(".").unwrap(), 1).unwrap();
        let names: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| entry.path.to_str().unwrap())
            .collect();
        assert_eq!(names, ["new", "old", "older"]);
    }
}
