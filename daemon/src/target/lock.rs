//! The lock that tells whether commands of the daemon's last life still run: every guard shares it as long as it lives, and
//! a starting daemon resumes no session before it could have it alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// Between two looks at the lock. There is no waiting for a lock with a time limit, and guards end within milliseconds.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Guards of the last life are still there.
#[derive(Debug, thiserror::Error)]
pub enum GuardsRemain {
    /// The time is over and a guard still holds the lock.
    #[error("commands of the last run of agentd are still ending ({0} is locked); `fuser {0}` shows their guards")]
    Locked(PathBuf),
    /// The lock file could not be used.
    #[error("{path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Waits, blocking, until no guard of an earlier daemon on this state directory is left, at most `limit`.
///
/// # Errors
/// Guards remain after `limit`, or the lock file cannot be opened.
pub fn wait_for_guards(state_dir: &Path, limit: Duration) -> Result<(), GuardsRemain> {
    let path = lock_path(state_dir);
    let failed = |source: io::Error| GuardsRemain::Io {
        path: path.clone(),
        source,
    };
    let file = open(&path).map_err(failed)?;
    let begin = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if begin.elapsed() < limit => std::thread::sleep(LOOK_AGAIN),
            Err(Errno::WOULDBLOCK) => return Err(GuardsRemain::Locked(path)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
}

/// Where the lock of a state directory is.
pub(super) fn lock_path(state_dir: &Path) -> PathBuf {
    state_dir.join("guards.lock")
}

/// Takes a guard's share of the lock; it is held until the file is closed.
pub(super) fn share(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    rustix::fs::flock(&file, FlockOperation::LockShared)?;
    Ok(file)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_the_last_share_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        assert!(wait_for_guards(dir.path(), Duration::ZERO).is_ok());
        let (one, two) = (
            share(&lock_path(dir.path())).unwrap(),
            share(&lock_path(dir.path())).unwrap(),
        );
        assert!(matches!(
            wait_for_guards(dir.path(), Duration::ZERO),
            Err(GuardsRemain::Locked(_))
        ));
        drop(one);
        assert!(matches!(
            wait_for_guards(dir.path(), Duration::ZERO),
            Err(GuardsRemain::Locked(_))
        ));
        drop(two);
        assert!(wait_for_guards(dir.path(), Duration::ZERO).is_ok());
    }
}
