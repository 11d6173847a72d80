//! What can go wrong with the log, sorted by what a caller does about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the log could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// `create` with an id that a session has.
    #[error("a session with this id exists already")]
    Exists,
    /// The name belongs to another session that is not deleted.
    #[error("another session has this name")]
    NameTaken,
    /// The append was made for another head than the log has: its maker's state is stale.
    #[error("the log ends at seq {head}, the append was to start at seq {expected}")]
    Conflict {
        /// Seq the append wanted for its first row.
        expected: u64,
        /// Seq of the last row the log has.
        head: u64,
    },
    /// The session has accepted an input of this id before.
    #[error("the session has an input with this id already")]
    DuplicateInput,
    /// No such session.
    #[error("no such session in the log")]
    NoSession,
    /// The append contradicts itself or is larger than the log takes.
    #[error("the log refuses this append: {0}")]
    Refused(&'static str),
    /// The writer's queue is full. Nothing was written; try again.
    #[error("the log's queue is full")]
    Busy,
    /// The writer has ended; nothing will be written any more.
    #[error("the log is closed")]
    Closed,
    /// SQLite or the disk failed. Nothing of the append is visible.
    #[error("{}: {detail}", .fault.message())]
    Storage {
        /// What kind of failure.
        fault: StorageFault,
        /// SQLite's words.
        detail: String,
    },
    /// A file stands where the database should be, and it is not ours.
    #[error("{} is not a database of agentd", .path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A newer agentd has migrated the database.
    #[error("{} has schema {found}, this agentd knows schemas up to {known}: use the newer agentd", .path.display())]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Schema version of the file.
        found: u64,
        /// Newest schema version of this binary.
        known: u64,
    },
    /// SQLite's shared memory and locks do not work over a network.
    #[error("{} is on a network file system ({kind}); set XDG_STATE_HOME to a local directory", .path.display())]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// Name of the file system.
        kind: String,
    },
    /// The backup that goes before a migration does not fit.
    #[error("migrating {} needs {needed} bytes for a backup first, {free} are free", .path.display())]
    NoRoomForBackup {
        /// The database.
        path: PathBuf,
        /// Bytes the backup takes.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The database or its directory cannot be opened or made.
    #[error("cannot open {}: {detail}", .path.display())]
    Open {
        /// What was opened.
        path: PathBuf,
        /// The reason.
        detail: String,
    },
}

/// How storage failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageFault {
    /// No space is left.
    Full,
    /// The file or the file system is read-only.
    ReadOnly,
    /// Reading, writing or syncing failed.
    Io,
    /// The file is damaged.
    Corrupt,
    /// Anything else SQLite reports.
    Other,
}

impl StorageFault {
    /// A short sentence part for people.
    pub fn message(self) -> &'static str {
        match self {
            Self::Full => "the disk is full",
            Self::ReadOnly => "the session database is read-only",
            Self::Io => "the disk failed",
            Self::Corrupt => "the session database is damaged",
            Self::Other => "the session database failed",
        }
    }

    /// What a person can do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Full => "free some space; the session goes on by itself",
            Self::ReadOnly => "make the state directory writable; the session goes on by itself",
            Self::Io => "look at the kernel's log for the disk; `agentctl doctor` shows where the database is",
            Self::Corrupt => "stop the daemon and run `agentctl doctor --db`",
            Self::Other => "the daemon's log has the details",
        }
    }
}

impl LogError {
    /// What to do about a storage failure; `None` where the message says it all.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Storage { fault, .. } => Some(fault.hint()),
            _ => None,
        }
    }

    pub(super) fn open(path: &Path, why: impl std::fmt::Display) -> Self {
        Self::Open {
            path: path.to_path_buf(),
            detail: why.to_string(),
        }
    }
}

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> Self {
        if let Some(broken) = broken_constraint(&error) {
            return broken;
        }
        Self::Storage {
            fault: fault(&error),
            detail: error.to_string(),
        }
    }
}

/// The constraints a caller can break on purpose. SQLite names columns, or the index where the index has expressions.
fn broken_constraint(error: &rusqlite::Error) -> Option<LogError> {
    let rusqlite::Error::SqliteFailure(failure, Some(message)) = error else {
        return None;
    };
    if failure.code != ErrorCode::ConstraintViolation {
        return None;
    }
    match message.as_str() {
        "UNIQUE constraint failed: sessions.id" => Some(LogError::Exists),
        "UNIQUE constraint failed: sessions.name" => Some(LogError::NameTaken),
        "UNIQUE constraint failed: index 'inputs'" => Some(LogError::DuplicateInput),
        _ => None,
    }
}

fn fault(error: &rusqlite::Error) -> StorageFault {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StorageFault::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StorageFault::ReadOnly,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => StorageFault::Io,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StorageFault::Corrupt,
        _ => StorageFault::Other,
    }
}
