//! The one thread that writes the database. It takes what waits as a group, gives each write a savepoint and commits the
//! group once, so that many sessions share one sync of the disk.
//!
//! A write that fails is undone alone. A commit that fails undoes the whole group, and every write of it is told so; the
//! connection is then thrown away, because after a failed sync nothing it holds in memory can be believed.

use std::path::PathBuf;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, watch};

use super::connection::open_writer;
use super::error::LogError;
use super::queue::{Message, Ran, Write};

/// Bytes of a transaction, unless a single write is larger: bounds how long a commit takes and so how long others wait.
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// Pages in the WAL from which it is written back when nobody waits (1 MiB).
const IDLE_CHECKPOINT_PAGES: u64 = 256;

/// Pages in the WAL from which it is written back even though writes wait (16 MiB).
const FORCED_CHECKPOINT_PAGES: u64 = 4096;

/// The writer's state, owned by its thread.
pub(super) struct Writer {
    path: PathBuf,
    /// `None` between a failure and the next attempt to open the database again.
    connection: Option<Connection>,
    messages: mpsc::Receiver<Message>,
    /// The message that did not fit into the last group.
    held: Option<Message>,
    committed: watch::Sender<u64>,
    #[cfg(test)]
    faults: super::faults::Faults,
}

type Group = Vec<Box<dyn Write>>;

impl Writer {
    /// A writer on an open connection. `committed` tells the pos of the last committed event.
    pub(super) fn new(
        path: PathBuf,
        connection: Connection,
        messages: mpsc::Receiver<Message>,
        committed: watch::Sender<u64>,
    ) -> Self {
        Self {
            path,
            connection: Some(connection),
            messages,
            held: None,
            committed,
            #[cfg(test)]
            faults: super::faults::Faults::default(),
        }
    }

    /// Starts the thread.
    pub(super) fn spawn(self) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || self.run())
    }

    /// Makes the writer fail as `faults` says.
    #[cfg(test)]
    pub(super) fn with_faults(mut self, faults: super::faults::Faults) -> Self {
        if let Some(connection) = &self.connection {
            faults.install(connection);
        }
        self.faults = faults;
        self
    }

    fn run(mut self) {
        while let Some(group) = self.next_group() {
            self.write(group);
            self.checkpoint();
        }
        self.close();
    }

    /// Waits for a write and takes what else waits. `None`: no write will come any more.
    fn next_group(&mut self) -> Option<Group> {
        let first = match self.held.take().or_else(|| self.messages.blocking_recv()) {
            Some(Message::Write(write)) => write,
            Some(Message::Stop) | None => return None,
        };
        let mut bytes = first.bytes();
        let mut group = vec![first];
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Write(write) if bytes.saturating_add(write.bytes()) <= GROUP_BYTES => {
                    bytes += write.bytes();
                    group.push(write);
                }
                other => {
                    self.held = Some(other);
                    break;
                }
            }
        }
        Some(group)
    }

    /// Commits the group and answers each of its writes.
    fn write(&mut self, mut group: Group) {
        let outcome = self.open().and_then(|connection| commit(connection, &mut group));
        match outcome {
            Ok(pos) => self.publish(pos),
            Err(ref error) => {
                tracing::error!(%error, "a transaction of the log failed");
                self.connection = None;
            }
        }
        let outcome = outcome.map(|_| ());
        for write in group {
            write.settle(outcome.clone());
        }
    }

    /// The connection, opened again if the last one was thrown away.
    fn open(&mut self) -> Result<&Connection, LogError> {
        if self.connection.is_none() {
            let connection = open_writer(&self.path)?;
            // What a commit that reported failure left behind is the truth now: readers would see it too.
            let pos = last_pos(&connection)?;
            #[cfg(test)]
            self.faults.install(&connection);
            self.connection = Some(connection);
            self.publish(pos);
        }
        self.connection.as_ref().ok_or(LogError::Closed)
    }

    fn publish(&self, pos: u64) {
        self.committed
            .send_if_modified(|last| std::mem::replace(last, pos) != pos);
    }

    /// Writes the WAL back into the database where it has grown, at once or when nobody waits.
    fn checkpoint(&self) {
        let Some(connection) = &self.connection else { return };
        let pages = match wal_pages(connection) {
            Ok(pages) => pages,
            Err(error) => return tracing::warn!(%error, "the size of the write-ahead log is unknown"),
        };
        let idle = self.held.is_none() && self.messages.is_empty();
        let due = pages >= FORCED_CHECKPOINT_PAGES || (idle && pages >= IDLE_CHECKPOINT_PAGES);
        if due && let Err(error) = run_checkpoint(connection, "PASSIVE") {
            tracing::warn!(%error, "the write-ahead log could not be written back");
        }
    }

    /// Refuses further writes and leaves one whole file behind.
    fn close(mut self) {
        self.messages.close();
        if let Some(connection) = self.connection.take() {
            let truncated = run_checkpoint(&connection, "TRUNCATE");
            let closed = connection.close().map_err(|(_, error)| error);
            if let Err(error) = truncated.and(closed) {
                tracing::warn!(%error, "the write-ahead log stays behind");
            }
        }
    }
}

/// Runs the writes of a group in one transaction; the pos of the last event of the log after it.
fn commit(connection: &Connection, group: &mut Group) -> Result<u64, LogError> {
    let outcome = transact(connection, group);
    if outcome.is_err() && !connection.is_autocommit() {
        // The connection is thrown away anyway; this only frees its locks at once.
        let _ = connection.execute_batch("ROLLBACK");
    }
    outcome
}

fn transact(connection: &Connection, group: &mut Group) -> Result<u64, LogError> {
    execute(connection, "BEGIN IMMEDIATE")?;
    for write in group.iter_mut() {
        execute(connection, "SAVEPOINT one_write")?;
        if write.run(connection) == Ran::Failed {
            // On a full disk or a failed read SQLite may have undone the whole transaction, and then the group is lost.
            execute(connection, "ROLLBACK TO one_write")?;
        }
        execute(connection, "RELEASE one_write")?;
    }
    let pos = last_pos(connection)?;
    execute(connection, "COMMIT")?;
    Ok(pos)
}

fn execute(connection: &Connection, sql: &str) -> Result<(), LogError> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// Pos of the last event ever written; it does not fall when events are deleted.
pub(super) fn last_pos(connection: &Connection) -> Result<u64, LogError> {
    let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Pages in the WAL that are not in the database yet.
fn wal_pages(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let (all, written_back): (i64, i64) = connection
        .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
        .query_row([], |row| Ok((row.get(1)?, row.get(2)?)))?;
    Ok(u64::try_from(all - written_back).unwrap_or(0))
}

fn run_checkpoint(connection: &Connection, mode: &str) -> Result<(), rusqlite::Error> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()))
}
