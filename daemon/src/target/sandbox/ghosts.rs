//! Places that a command must not be able to make, although they are not there yet.
//!
//! A mount needs something to lie on, so a missing directory is made, empty, before the command starts and removed when it
//! ends. Commands at work in the same tree share it: each holds a shared lock on the directory, and only who can have
//! it alone removes it. What is no directory cannot be stood in for by an empty file without confusing others, so it is
//! removed afterwards if the command made it. Both are named from a handle of the directory they are in, through no link:
//! another command in the same tree must not lead a removal elsewhere.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, ResolveFlags, flock};

/// Tries to make and lock one directory while others remove it.
const TRIES: usize = 10;

/// The mode of a ghost; the sticky bit, which nobody sets on such a directory, tells it from a person's empty one.
const GHOST_MODE: u32 = 0o1755;
const STICKY: u32 = 0o1000;

/// A name in a directory.
#[derive(Debug)]
struct Name {
    dir: OwnedFd,
    name: OsString,
}

/// Directories that stand in for nothing, and files that must not appear.
#[derive(Debug, Default)]
pub(in crate::target) struct Ghosts {
    dirs: Vec<(Name, OwnedFd)>,
    forbidden: Vec<Name>,
}

impl Ghosts {
    /// Makes a directory at `path` unless something is there.
    pub(super) fn stand_in(&mut self, path: &Path) {
        let Some(name) = Name::of(path) else { return };
        for _ in 0..TRIES {
            let made = rustix::fs::mkdirat(&name.dir, &name.name, Mode::from_raw_mode(GHOST_MODE)).is_ok();
            // Another command's ghost is shared with it.
            if !made && !name.is_ghost() {
                return;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(dir) = rustix::fs::openat(&name.dir, &name.name, flags, Mode::empty()) else {
                return;
            };
            if flock(&dir, FlockOperation::NonBlockingLockShared).is_ok() && name.is(&dir) {
                self.dirs.push((name, dir));
                return;
            }
        }
    }

    /// The file at `path` goes when the command has ended, if it is not there now.
    pub(super) fn forbid(&mut self, path: &Path) {
        let Some(name) = Name::of(path) else { return };
        if name.stat().is_none() {
            self.forbidden.push(name);
        }
    }

    /// Removes what only stood in, and what must not be there. Called when the command and all it started are gone.
    pub(in crate::target) fn leave(self) {
        for (name, dir) in self.dirs {
            let alone = flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok();
            if alone && name.is(&dir) {
                // Not empty, then somebody else has put it to use, and it stays.
                let _ = rustix::fs::unlinkat(&name.dir, &name.name, AtFlags::REMOVEDIR);
            }
        }
        for name in self.forbidden {
            let _ = rustix::fs::unlinkat(&name.dir, &name.name, AtFlags::empty());
        }
    }
}

impl Name {
    /// None if there is no such directory, or a link on the way to it.
    fn of(path: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat2(CWD, path.parent()?, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        let name = path.file_name()?.to_owned();
        Some(Self { dir, name })
    }

    fn stat(&self) -> Option<rustix::fs::Stat> {
        rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn is_ghost(&self) -> bool {
        self.stat().is_some_and(|found| {
            FileType::from_raw_mode(found.st_mode) == FileType::Directory && found.st_mode & STICKY != 0
        })
    }

    /// Whether this name is that of `held`.
    fn is(&self, held: &OwnedFd) -> bool {
        let (Ok(held), Some(there)) = (rustix::fs::fstat(held), self.stat()) else {
            return false;
        };
        (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_goes_with_its_last_holder_and_only_while_it_is_empty() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(".agent");
        let (mut one, mut other) = (Ghosts::default(), Ghosts::default());
        one.stand_in(&path);
        other.stand_in(&path);
        one.leave();
        assert!(path.exists(), "the other still needs it");
        other.leave();
        assert!(!path.exists());
        let mut used = Ghosts::default();
        used.stand_in(&path);
        std::fs::write(path.join("config.toml"), "x")?;
        used.leave();
        assert!(path.join("config.toml").exists());
        Ok(())
    }

    #[test]
    fn an_empty_directory_of_a_person_stays() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(".agent");
        std::fs::create_dir(&path)?;
        let mut ghosts = Ghosts::default();
        ghosts.stand_in(&path);
        ghosts.leave();
        assert!(path.exists());
        Ok(())
    }

    #[test]
    fn a_file_that_was_there_before_is_left_alone() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::write(&old, "x")?;
        let mut ghosts = Ghosts::default();
        ghosts.forbid(&old);
        ghosts.forbid(&new);
        std::fs::write(&new, "x")?;
        ghosts.leave();
        assert!(old.exists() && !new.exists());
        Ok(())
    }

    #[test]
    fn a_link_put_in_place_of_the_repository_leads_no_removal_elsewhere() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let (git, outside) = (dir.path().join("root/.git"), dir.path().join("outside"));
        std::fs::create_dir_all(&git)?;
        std::fs::create_dir_all(outside.join("hooks"))?;
        std::fs::write(outside.join("config"), "x")?;
        let mut ghosts = Ghosts::default();
        ghosts.forbid(&git.join("config"));
        ghosts.stand_in(&git.join("hooks"));
        std::fs::rename(&git, dir.path().join("moved"))?;
        std::os::unix::fs::symlink(&outside, &git)?;
        let mut late = Ghosts::default();
        late.stand_in(&git.join("info"));
        ghosts.leave();
        late.leave();
        assert!(outside.join("config").exists() && outside.join("hooks").exists());
        assert!(!outside.join("info").exists() && !dir.path().join("moved/hooks").exists());
        Ok(())
    }
}
