//! Places that a command must not be able to make, although they are not there yet.
//!
//! A mount needs something to lie on, so a missing directory is made, empty, before the command starts and removed when it
//! ends. Commands at work in the same tree share it: each holds a shared lock on the directory, and only who can have
//! it alone removes it. What is no directory cannot be stood in for by an empty file without confusing others, so it is
//! removed afterwards if the command made it.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Tries to make and lock one directory while others remove it.
const TRIES: usize = 10;

/// The mode of a ghost; the sticky bit, which nobody sets on such a directory, tells it from a person's empty one.
const GHOST_MODE: u32 = 0o1755;
const STICKY: u32 = 0o1000;

/// Directories that stand in for nothing, and files that must not appear.
#[derive(Debug, Default)]
pub(in crate::target) struct Ghosts {
    dirs: Vec<(PathBuf, File)>,
    forbidden: Vec<PathBuf>,
}

impl Ghosts {
    /// Makes a directory at `path` unless something is there.
    pub(super) fn stand_in(&mut self, path: &Path) {
        for _ in 0..TRIES {
            let made = DirBuilder::new().mode(GHOST_MODE).create(path).is_ok();
            // Another command's ghost is shared with it.
            let ghost = || {
                path.symlink_metadata()
                    .is_ok_and(|found| found.is_dir() && found.mode() & STICKY != 0)
            };
            if !made && !ghost() {
                return;
            }
            let Ok(dir) = File::open(path) else { return };
            if flock(&dir, FlockOperation::NonBlockingLockShared).is_ok() && is_at(&dir, path) {
                self.dirs.push((path.to_owned(), dir));
                return;
            }
        }
    }

    /// The file at `path` goes when the command has ended, if it is not there now.
    pub(super) fn forbid(&mut self, path: PathBuf) {
        if path.symlink_metadata().is_err() {
            self.forbidden.push(path);
        }
    }

    /// Removes what only stood in, and what must not be there. Called when the command and all it started are gone.
    pub(in crate::target) fn leave(self) {
        for (path, dir) in self.dirs {
            let alone = flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok();
            if alone && is_at(&dir, &path) {
                // Not empty, then somebody else has put it to use, and it stays.
                let _ = std::fs::remove_dir(&path);
            }
        }
        for path in self.forbidden {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn is_at(dir: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (rustix::fs::fstat(dir), rustix::fs::lstat(path)) else {
        return false;
    };
    (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
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
        ghosts.forbid(old.clone());
        ghosts.forbid(new.clone());
        std::fs::write(&new, "x")?;
        ghosts.leave();
        assert!(old.exists() && !new.exists());
        Ok(())
    }
}
