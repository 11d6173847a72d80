//! Going through a directory as `.gitignore` files let a person see it. Rules are taken from the root down to the directory
//! and below, never from above the root or from the user's own git configuration; links are shown and not followed.
//!
//! Each directory is opened from the handle of its root, like every file, so that one that becomes a link on the way is
//! passed over instead of shown: a walk never leaves the directory it began in.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat};
use rustix::io::Errno;

use super::open::{Anchor, OpenFile, open_beneath, open_error};
use super::resolve::Resolved;
use super::{Target, TargetError};

mod ignored;

use ignored::Level;

/// A directory that only git itself cares for.
const GIT: &str = ".git";

/// Entries of one directory that are looked at; all of them are in memory at once.
const ENTRIES_LIMIT: usize = 200_000;

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
    /// When its content last changed.
    pub modified: SystemTime,
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

/// How a walk went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// Whether ignore rules counted.
    pub rules: Rules,
    /// A directory, relative to the one that was walked, with too many entries for all of them to be shown.
    pub crowded: Option<PathBuf>,
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
    ) -> Result<Walked, TargetError> {
        self.check_not_hidden(resolved)?;
        let mut walk = Walk {
            anchor: self.anchor(resolved)?,
            dir: &resolved.path,
            depth,
            in_git: resolved.path.components().any(|part| part.as_os_str() == GIT),
            crowded: None,
        };
        let entries = walk
            .entries(Path::new(""))
            .map_err(|errno| open_error(resolved, errno))?;
        let (rules, level) = match walk.level_from(resolved.root) {
            Some(level) => (Rules::Kept, level),
            None => (Rules::HideAll, walk.level(Path::new(""), None)),
        };
        // Broken off is as good as done.
        let _ = walk.go(entries, level, visit);
        let crowded = walk.crowded;
        Ok(Walked { rules, crowded })
    }

    /// Opens a file that a walk through `dir` found.
    ///
    /// # Errors
    /// As [`Target::open_file`], and where the file itself would have been asked about.
    pub fn open_found(&self, dir: &Resolved, found: &Found) -> Result<OpenFile, TargetError> {
        let shown = found.name.display().to_string();
        let file = self.open_file(&Resolved {
            shown,
            path: dir.path.join(&found.name),
            ..dir.clone()
        })?;
        if self.is_foreign(dir.root, &file.stat) {
            let shown = found.name.display();
            return Err(TargetError::Refused(format!("{shown} is a hard link to a file of somebody else")));
        }
        Ok(file)
    }
}

/// An entry that was read and not yet shown.
struct Ahead {
    found: Found,
    /// The rules of the directory it is in.
    level: Rc<Level>,
}

struct Walk<'a> {
    anchor: Anchor<'a>,
    /// The directory that is walked; names are relative to it.
    dir: &'a Path,
    depth: Depth,
    /// The content of a repository was asked for.
    in_git: bool,
    crowded: Option<PathBuf>,
}

impl Walk<'_> {
    /// The rules of the directory and of all above it up to its root; none if they hide it.
    fn level_from(&self, root: Option<usize>) -> Option<Rc<Level>> {
        // Outside of the roots nobody's rules count but the directory's own.
        let parts: Vec<_> = match root {
            Some(_) if self.anchor.rest != Path::new(".") => self.anchor.rest.components().collect(),
            _ => return Some(self.level(Path::new(""), None)),
        };
        let mut rest = PathBuf::from(".");
        let mut path: PathBuf = self.dir.ancestors().nth(parts.len())?.to_path_buf();
        let mut level = Level::read(self.anchor.dir.as_fd(), &rest, &path, None);
        for part in parts {
            rest.push(part);
            path.push(part);
            if level.hides(&path, FileType::Directory) {
                return None;
            }
            level = Level::read(self.anchor.dir.as_fd(), &rest, &path, Some(level));
        }
        Some(level)
    }

    fn level(&self, name: &Path, above: Option<Rc<Level>>) -> Rc<Level> {
        let (rest, path) = (self.anchor.rest.join(name), self.dir.join(name));
        Level::read(self.anchor.dir.as_fd(), &rest, &path, above)
    }

    fn go(
        &mut self,
        first: Vec<Found>,
        level: Rc<Level>,
        visit: &mut dyn FnMut(Found) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut ahead = Vec::new();
        self.take(&mut ahead, first, &level);
        while let Some(Ahead { found, level }) = ahead.pop() {
            let name = found.name.clone();
            let down = found.kind == FoundKind::Directory && self.goes_below(&name);
            visit(found)?;
            // What cannot be read, or is no directory any more, is left out.
            let Some(entries) = down.then(|| self.entries(&name).ok()).flatten() else {
                continue;
            };
            let level = self.level(&name, Some(level));
            self.take(&mut ahead, entries, &level);
        }
        ControlFlow::Continue(())
    }

    fn goes_below(&self, name: &Path) -> bool {
        match self.depth {
            Depth::All => true,
            Depth::Levels(levels) => name.components().count() < levels,
        }
    }

    /// Puts the entries that are to be shown on top of `ahead`, the first in order topmost.
    fn take(&self, ahead: &mut Vec<Ahead>, mut entries: Vec<Found>, level: &Rc<Level>) {
        entries.retain(|found| {
            let kind = match found.kind {
                FoundKind::Directory => FileType::Directory,
                FoundKind::Link => FileType::Symlink,
                FoundKind::File => FileType::RegularFile,
            };
            let of_git = !self.in_git && found.name.file_name().is_some_and(|name| name == GIT);
            !of_git && !level.hides(&self.dir.join(&found.name), kind)
        });
        entries.sort_by(|one, other| other.name.cmp(&one.name));
        ahead.extend(entries.into_iter().map(|found| Ahead {
            found,
            level: Rc::clone(level),
        }));
    }

    /// What is in the directory `name`, in no order.
    fn entries(&mut self, name: &Path) -> Result<Vec<Found>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = open_beneath(self.anchor.dir.as_fd(), &self.anchor.rest.join(name), flags)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&dir)? {
            // A directory that stops answering has shown what it has.
            let Ok(entry) = entry else { break };
            let own = entry.file_name();
            if matches!(own.to_bytes(), b"." | b"..") {
                continue;
            }
            if entries.len() >= ENTRIES_LIMIT {
                self.crowded.get_or_insert_with(|| name.to_path_buf());
                break;
            }
            entries.extend(found(&dir, name, own));
        }
        Ok(entries)
    }
}

/// The entry `own` of `dir`; none if it is gone already.
fn found(dir: &OwnedFd, name: &Path, own: &std::ffi::CStr) -> Option<Found> {
    use std::os::unix::ffi::OsStrExt;
    let stat = rustix::fs::statat(dir, own, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Found {
        name: name.join(std::ffi::OsStr::from_bytes(own.to_bytes())),
        kind: match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => FoundKind::Directory,
            FileType::Symlink => FoundKind::Link,
            _ => FoundKind::File,
        },
        modified: modified(&stat),
    })
}

/// Times before 1970 count as 1970: they only order a list.
fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests;
