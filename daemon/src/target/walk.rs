//! Going through a directory as `.gitignore` files let a person see it. Rules are taken from the root down to the directory
//! and below, never from above the root or from the user's own git configuration; links are shown and not followed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, Walk, WalkBuilder};

use super::open::OpenFile;
use super::resolve::Resolved;
use super::{Target, TargetError};

/// A directory that only git itself cares for.
const GIT: &str = ".git";

/// How far down to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// So many levels, 1 being the directory's own entries.
    Levels(usize),
    /// To the end.
    All,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundKind {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else.
    File,
}

/// One entry on the way.
#[derive(Debug)]
pub struct Found {
    /// Relative to the directory that is walked.
    pub name: PathBuf,
    /// What it is.
    pub kind: FoundKind,
    entry: DirEntry,
}

impl Found {
    /// When its content last changed.
    pub fn modified(&self) -> SystemTime {
        let modified = self.entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
        modified.unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// Whether ignore rules counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rules {
    /// They did.
    #[default]
    Kept,
    /// They hide the directory itself, so those from above it were left out.
    HideAll,
}

impl Target {
    /// Shows every entry below a directory to `visit`, sorted by path, until it breaks.
    ///
    /// # Errors
    /// It does not exist, is no directory, or cannot be read. What cannot be read below it is left out.
    pub fn walk(
        &self,
        resolved: &Resolved,
        depth: Depth,
        visit: &mut dyn FnMut(Found) -> ControlFlow<()>,
    ) -> Result<Rules, TargetError> {
        self.open_directory(resolved)?;
        std::fs::read_dir(&resolved.path).map_err(|error| TargetError::io(resolved.shown.as_str(), error))?;
        let dir = resolved.path.as_path();
        let root = resolved
            .root
            .and_then(|index| self.roots().get(index))
            .map(|root| root.path.as_path());
        if pass(walk(root.unwrap_or(dir), dir, depth), dir, visit) == Reached::Yes {
            return Ok(Rules::Kept);
        }
        pass(walk(dir, dir, depth), dir, visit);
        Ok(Rules::HideAll)
    }

    /// Opens a file that a walk through `dir` found.
    pub fn open_found(&self, dir: &Resolved, found: &Found) -> Result<OpenFile, TargetError> {
        let shown = found.name.display().to_string();
        self.open_file(&Resolved {
            shown,
            path: found.entry.path().to_path_buf(),
            ..dir.clone()
        })
    }
}

/// A walk from `top`, whose rules count first, straight to `dir` and then everything below it.
fn walk(top: &Path, dir: &Path, depth: Depth) -> Walk {
    let above = dir.strip_prefix(top).map_or(0, |rest| rest.components().count());
    let wanted = dir.to_path_buf();
    let in_git = dir.components().any(|component| component.as_os_str() == GIT);
    WalkBuilder::new(top)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_path(|one, other| one.cmp(other))
        .max_depth(match depth {
            Depth::Levels(levels) => Some(above + levels),
            Depth::All => None,
        })
        .filter_entry(move |entry| {
            let below = entry.path().starts_with(&wanted);
            wanted.starts_with(entry.path()) || (below && (in_git || entry.file_name() != GIT))
        })
        .build()
}

/// Whether a walk came to its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Yes,
    No,
}

fn pass(walk: Walk, dir: &Path, visit: &mut dyn FnMut(Found) -> ControlFlow<()>) -> Reached {
    let mut reached = Reached::No;
    for entry in walk.filter_map(Result::ok) {
        let Ok(name) = entry.path().strip_prefix(dir) else {
            continue;
        };
        reached = Reached::Yes;
        if name.as_os_str().is_empty() {
            continue;
        }
        let name = name.to_path_buf();
        let kind = match entry.file_type() {
            Some(kind) if kind.is_dir() => FoundKind::Directory,
            Some(kind) if kind.is_symlink() => FoundKind::Link,
            _ => FoundKind::File,
        };
        if visit(Found { name, kind, entry }).is_break() {
            break;
        }
    }
    reached
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::target::TargetSpec;

    fn names(target: &Target, dir: &str, depth: Depth) -> (Vec<String>, Rules) {
        let mut names = Vec::new();
        let rules = target.walk(&target.resolve(dir).unwrap(), depth, &mut |found| {
            names.push(found.name.display().to_string());
            ControlFlow::Continue(())
        });
        (names, rules.unwrap())
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
        let one = Depth::Levels(1);
        assert_eq!(
            names(&target, ".", one).0,
            [".env", ".github", ".gitignore", "a.rs", "kept.txt", "src"]
        );
        assert_eq!(
            names(&target, "src", one),
            (vec!["b.rs".into(), "deep".into()], Rules::Kept)
        );
        assert_eq!(names(&target, "src", Depth::All).0, ["b.rs", "deep", "deep/c.rs"]);
        assert_eq!(
            names(&target, "build", Depth::All),
            (vec!["out".into(), "out/x".into()], Rules::HideAll)
        );
        assert_eq!(names(&target, ".git", one).0, ["objects"]);
    }
}
