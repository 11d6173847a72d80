//! Reading beside the writer: a few connections that cannot write, each used by one query at a time on a blocking thread.
//! A read transaction is one closure, so it never lasts longer than a page.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection::open_reader;
use super::error::LogError;

/// Connections that read at once. More than a few only compete for the same disk and hold memory.
const READERS: usize = 4;

/// The connections; opened when first needed, kept until the log closes.
#[derive(Clone)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path: Arc::new(path),
            turns: Arc::new(Semaphore::new(READERS)),
            idle: Arc::default(),
        }
    }

    /// Runs `query` in one read transaction: all its statements see the same commit.
    pub(super) async fn read<T, F>(&self, query: F) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    {
        let turn = Arc::clone(&self.turns)
            .acquire_owned()
            .await
            .map_err(|_| LogError::Closed)?;
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let connection = readers.take()?;
            let value = in_transaction(&connection, query)?;
            readers.idle().push(connection);
            Ok(value)
        });
        task.await.map_err(|_| LogError::Closed)?
    }

    /// Takes no more queries, waits for those that run and closes the connections.
    pub(super) async fn close(&self) {
        let all = u32::try_from(READERS).unwrap_or(u32::MAX);
        // Fails only if another call has closed the readers already.
        let _ended = self.turns.acquire_many(all).await;
        self.turns.close();
        self.idle().clear();
    }

    /// A connection whose query failed is not given back; the next query opens another.
    fn take(&self) -> Result<Connection, LogError> {
        let idle = self.idle().pop();
        idle.map_or_else(|| open_reader(&self.path), Ok)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        // The list is whole after any panic: push and pop cannot leave it half done.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_transaction<T>(
    connection: &Connection,
    query: impl FnOnce(&Connection) -> Result<T, LogError>,
) -> Result<T, LogError> {
    let transaction = connection.unchecked_transaction()?;
    let value = query(&transaction)?;
    transaction.commit()?;
    Ok(value)
}
