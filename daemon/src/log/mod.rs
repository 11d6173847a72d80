//! The log: every session's numbered events, in one SQLite database. The only code that knows SQL.
//!
//! The log keeps rows. What an event means is the session's; here it is a kind, a JSON body and private bytes. What a
//! caller relies on: an answered append is on the disk; `seq` is gapless within a session; `pos` grows in the order of
//! commits over all sessions; nothing of a failed append is ever visible; a read never waits for a write.
//!
//! `EventLog` is a handle and may be cloned. One thread (`writer`) writes; a few connections read (`readers`).

mod append;
mod approvals;
mod blobs;
mod connection;
mod delete;
mod error;
#[cfg(test)]
mod faults;
mod files;
mod queue;
mod read;
mod readers;
mod retention;
mod rows;
mod schema;
mod sessions;
mod spent;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::watch;

pub use approvals::{APPROVAL_PAGE, ApprovalChange, ApprovalFilter, ApprovalRow, Settled};
pub use blobs::{BLOB_BYTES, BlobHash, BlobPart};
pub use delete::Deletion;
pub use error::{LogError, StorageFault};
pub use read::{PAGE_BYTES, PAGE_ROWS};
pub(crate) use retention::take_away;
pub use rows::{Append, Appended, Columns, Lifetime, NewRow, NewSession, Row, SavedState, SessionKey};
pub use sessions::{Resolved, SESSION_PAGE, SHORTEST_PART, SessionFilter, SessionRow};
pub use spent::{SPENT_GROUPS, Spent, SpentBy};

use delete::Purged;
use queue::{Queue, WhenFull};
use readers::Readers;
use writer::Writer;

/// Name of the database in the state directory.
pub const DATABASE: &str = "agentd.db";

/// Bytes a probe writes: most appends are smaller.
const PROBE_BYTES: usize = 64 * 1024;

/// Bytes a write counts in the queue beside its data.
const WRITE_OVERHEAD_BYTES: usize = 256;

/// The log, for everyone who reads or appends.
#[derive(Clone)]
pub struct EventLog {
    queue: Queue,
    readers: Readers,
    committed: watch::Receiver<u64>,
}

/// The log's owner: ends its thread.
#[must_use = "the log's thread is ended by `shutdown`"]
pub struct LogJoin {
    log: EventLog,
    thread: JoinHandle<()>,
}

impl EventLog {
    /// Opens the database in `dir`, or makes it. Blocks: reads the disk and may migrate.
    ///
    /// # Errors
    /// A database that is newer, damaged or not ours, a network file system, a directory that cannot be made or written.
    pub fn open(dir: &Path) -> Result<(Self, LogJoin), LogError> {
        let (log, writer) = Self::prepare(dir)?;
        let thread = writer.spawn().map_err(|error| LogError::open(&database(dir), error))?;
        Ok((log.clone(), LogJoin { log, thread }))
    }

    /// The open database with a writer that has not started.
    fn prepare(dir: &Path) -> Result<(Self, Writer), LogError> {
        let path = database(dir);
        let connection = connection::open_database(dir, &path)?;
        let (committed, watch) = watch::channel(writer::last_pos(&connection)?);
        let (queue, messages) = Queue::new();
        let writer = Writer::new(path.clone(), connection, messages, committed);
        Ok((
            Self {
                queue,
                readers: Readers::new(path),
                committed: watch,
            },
            writer,
        ))
    }

    /// Makes a session and appends its first rows, in one transaction.
    ///
    /// # Errors
    /// `Exists`, `NameTaken`, `NoSession` for an unknown parent, and those of `append`.
    pub async fn create(&self, new: NewSession, append: Append) -> Result<Appended, LogError> {
        let bytes = append.bytes() + WRITE_OVERHEAD_BYTES;
        let work = move |connection: &Connection| append::create(connection, &new, append);
        self.queue.write(bytes, WhenFull::Refuse, work).await
    }

    /// Appends rows to a session. Answered when they are on the disk.
    ///
    /// # Errors
    /// `Conflict` when the log's head is another, `DuplicateInput`, `NameTaken`, `NoSession`, `Refused`; `Busy` when the
    /// queue is full; `Storage` when the disk or SQLite failed. Nothing was written then.
    pub async fn append(&self, append: Append) -> Result<Appended, LogError> {
        self.append_when(append, WhenFull::Refuse).await
    }

    /// As `append`, but waits for room in the queue: for the ends of effects, which must not be dropped.
    ///
    /// # Errors
    /// Those of `append` without `Busy`.
    pub async fn append_when_free(&self, append: Append) -> Result<Appended, LogError> {
        self.append_when(append, WhenFull::Wait).await
    }

    async fn append_when(&self, append: Append, when_full: WhenFull) -> Result<Appended, LogError> {
        let bytes = append.bytes() + WRITE_OVERHEAD_BYTES;
        self.queue
            .write(bytes, when_full, move |connection| append::append(connection, append))
            .await
    }

    /// Rows of a session with a seq above `after_seq`, oldest first: at most `limit`, `PAGE_ROWS`, or `PAGE_BYTES` and one
    /// row. An empty page: there are no more.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn read(&self, session: SessionKey, after_seq: u64, limit: usize) -> Result<Vec<Row>, LogError> {
        self.readers
            .read(move |connection| read::forwards(connection, session, after_seq, limit))
            .await
    }

    /// Rows of a session with a seq below `before_seq`, newest first, in pages as those of `read`.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn read_before(&self, session: SessionKey, before_seq: u64, limit: usize) -> Result<Vec<Row>, LogError> {
        self.readers
            .read(move |connection| read::backwards(connection, session, before_seq, limit))
            .await
    }

    /// Rows of all sessions that are not deleted with a pos above `pos`, in the order of commits, each with its session's
    /// key and id; only those of `kinds` unless that is empty. Pages as those of `read`. When a page is short, a cursor may
    /// move on to the `head_pos` read before the call.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn after_pos(
        &self,
        pos: u64,
        limit: usize,
        kinds: &[&str],
    ) -> Result<Vec<(SessionKey, String, Row)>, LogError> {
        let kinds = serde_json::Value::from(kinds).to_string();
        self.readers
            .read(move |connection| read::after_pos(connection, pos, limit, &kinds))
            .await
    }

    /// Pos of the last committed event.
    pub fn head_pos(&self) -> u64 {
        *self.committed.borrow()
    }

    /// Pos of the last committed event, as it changes. A change is published after its commit and before the answer to the
    /// append.
    pub fn committed_pos(&self) -> watch::Receiver<u64> {
        self.committed.clone()
    }

    /// The session with this whole id, deleted or not.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn session(&self, id: &str) -> Result<Option<SessionRow>, LogError> {
        let id = id.to_owned();
        self.readers
            .read(move |connection| sessions::by_id(connection, &id))
            .await
    }

    /// The session of this key, deleted or not.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn session_by_key(&self, session: SessionKey) -> Result<Option<SessionRow>, LogError> {
        self.readers
            .read(move |connection| sessions::by_key(connection, session))
            .await
    }

    /// A page of sessions, newest use first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionRow>, LogError> {
        self.readers
            .read(move |connection| sessions::list(connection, &filter))
            .await
    }

    /// Finds the session a person means: a whole id, a name, `last` (the newest session of `root_path`, children,
    /// throw-away, archived and deleted ones left out), or at least `SHORTEST_PART` letters of an id's beginning or end.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn resolve(&self, text: &str, root_path: Option<&str>) -> Result<Resolved, LogError> {
        let text = text.to_owned();
        let root_path = root_path.map(str::to_owned);
        self.readers
            .read(move |connection| sessions::resolve(connection, &text, root_path.as_deref()))
            .await
    }

    /// The stored fold of a session's log.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn saved_state(&self, session: SessionKey) -> Result<Option<SavedState>, LogError> {
        self.readers
            .read(move |connection| sessions::state(connection, session))
            .await
    }

    /// The `input.accepted` row of an input.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn find_input(&self, session: SessionKey, input_id: &str) -> Result<Option<Row>, LogError> {
        let input_id = input_id.to_owned();
        self.readers
            .read(move |connection| read::input(connection, session, &input_id))
            .await
    }

    /// Seq of the `nth` last event of a kind, counting from 1: `("turn.started", 3)` is where the last three turns begin.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn seq_of_nth_last(&self, session: SessionKey, kind: &str, nth: u64) -> Result<Option<u64>, LogError> {
        let kind = kind.to_owned();
        self.readers
            .read(move |connection| read::nth_last(connection, session, &kind, nth))
            .await
    }

    /// The last `limit` rows of a kind, at most `PAGE_ROWS`, newest first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn last_of_kind(
        &self,
        session: SessionKey,
        kind: &'static str,
        limit: usize,
    ) -> Result<Vec<Row>, LogError> {
        self.readers
            .read(move |connection| read::last_of_kind(connection, session, kind, limit))
            .await
    }

    /// The first row of a kind with a seq above `after_seq`.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn first_of_kind(
        &self,
        session: SessionKey,
        kind: &'static str,
        after_seq: u64,
    ) -> Result<Option<Row>, LogError> {
        self.readers
            .read(move |connection| read::first_of_kind(connection, session, kind, after_seq))
            .await
    }

    /// What model calls used, of one session or of all, deleted ones included: at most `SPENT_GROUPS` sums, the newest first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn spent(&self, session: Option<SessionKey>, by: SpentBy) -> Result<Vec<Spent>, LogError> {
        self.readers
            .read(move |connection| spent::sums(connection, session, by))
            .await
    }

    /// US dollars of the model calls that ended at `since_ms` or later, as far as their price is known.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn cost_since(&self, since_ms: i64) -> Result<f64, LogError> {
        self.readers
            .read(move |connection| spent::cost_since(connection, since_ms))
            .await
    }

    /// Approvals in the order they were asked, at most `APPROVAL_PAGE`; those of deleted sessions are left out.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn list_approvals(&self, filter: ApprovalFilter) -> Result<Vec<ApprovalRow>, LogError> {
        self.readers
            .read(move |connection| approvals::list(connection, &filter))
            .await
    }

    /// One approval, waiting or settled.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn approval(&self, id: &str) -> Result<Option<ApprovalRow>, LogError> {
        let id = id.to_owned();
        self.readers
            .read(move |connection| approvals::find(connection, &id))
            .await
    }

    /// Hides a session and its descendants, or shows them again.
    ///
    /// # Errors
    /// `NoSession`, `NameTaken` when a restored name belongs to another now, and storage errors.
    pub async fn delete(&self, session: SessionKey, deletion: Deletion) -> Result<(), LogError> {
        let work = move |connection: &Connection| delete::mark(connection, session, deletion);
        self.queue.write(WRITE_OVERHEAD_BYTES, WhenFull::Wait, work).await
    }

    /// Takes a deleted session, its descendants and the blobs only they had away for good. May be called again after a
    /// crash.
    ///
    /// # Errors
    /// `Refused` when the session is not deleted, and storage errors.
    pub async fn purge(&self, session: SessionKey) -> Result<(), LogError> {
        if self
            .session_by_key(session)
            .await?
            .is_some_and(|row| row.deleted_at_ms.is_none())
        {
            return Err(LogError::Refused("only a deleted session can be purged"));
        }
        let slice = move |connection: &Connection| delete::purge_slice(connection, session);
        while self.queue.write(WRITE_OVERHEAD_BYTES, WhenFull::Wait, slice).await? == Purged::Partly {}
        Ok(())
    }

    /// Sessions that were deleted before `at_ms`, the earliest first; at most a tenth of all there are, and at least one.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn deleted_before(&self, at_ms: i64) -> Result<Vec<SessionKey>, LogError> {
        self.readers
            .read(move |connection| delete::deleted_before(connection, at_ms))
            .await
    }

    /// Stores a blob for a session, once for all sessions that have the same bytes.
    ///
    /// # Errors
    /// `Refused` over `BLOB_BYTES`, `NoSession`, and storage errors.
    pub async fn put_blob(&self, session: SessionKey, data: Vec<u8>) -> Result<BlobHash, LogError> {
        if data.len() > BLOB_BYTES {
            return Err(LogError::Refused("the blob is too large"));
        }
        let hashed = tokio::task::spawn_blocking(move || (BlobHash::of(&data), data)).await;
        let (hash, data) = hashed.map_err(|_| LogError::Closed)?;
        let bytes = data.len() + WRITE_OVERHEAD_BYTES;
        let work = move |connection: &Connection| blobs::put(connection, session, &hash, &data);
        self.queue.write(bytes, WhenFull::Wait, work).await?;
        Ok(hash)
    }

    /// At most `limit` bytes from `offset` on of a blob; none where the session does not refer to such a blob.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn blob_part(
        &self,
        session: SessionKey,
        hash: BlobHash,
        offset: u64,
        limit: u64,
    ) -> Result<Option<BlobPart>, LogError> {
        let read = move |connection: &Connection| blobs::part(connection, session, &hash, offset, limit);
        self.readers.read(read).await
    }

    /// Writes and syncs as much as a usual append, to find out whether the disk takes writes (again).
    ///
    /// # Errors
    /// Storage errors.
    pub async fn probe(&self) -> Result<(), LogError> {
        self.queue.write(PROBE_BYTES, WhenFull::Wait, append::probe).await
    }
}

impl LogJoin {
    /// Writes what is queued, puts everything into the one database file and ends the thread. Later calls on handles answer
    /// `Closed`.
    pub async fn shutdown(self) {
        self.log.readers.close().await;
        self.log.queue.stop().await;
        let Self { log, thread } = self;
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the log's writer thread panicked");
        }
        drop(log);
    }
}

/// Where the database of a state directory lies.
pub fn database(dir: &Path) -> PathBuf {
    dir.join(DATABASE)
}
