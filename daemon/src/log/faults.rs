//! Failures that tests ask for, made by SQLite itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::Connection;

/// How many of the next commits fail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults(Arc<AtomicUsize>);

impl Faults {
    /// Makes the next `count` commits of the writer fail.
    pub(crate) fn fail_commits(&self, count: usize) {
        self.0.store(count, Ordering::SeqCst);
    }

    /// A commit hook that says no turns the COMMIT into a rollback, as a failed sync does.
    pub(super) fn install(&self, connection: &Connection) {
        let left = Arc::clone(&self.0);
        let refuse = move || {
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1))
                .is_ok()
        };
        let installed = connection.commit_hook(Some(refuse));
        assert!(installed.is_ok(), "the commit hook cannot be installed");
    }
}
