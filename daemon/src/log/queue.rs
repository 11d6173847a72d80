//! The way into the writer thread: writes of any kind, bounded in number and bytes, each answered once.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::error::LogError;

/// Writes that may wait. More would only hide that the disk does not keep up.
pub(super) const QUEUED_WRITES: usize = 256;

/// Bytes of all waiting writes; what the queue costs in memory at most.
pub(super) const QUEUED_BYTES: usize = 16 * 1024 * 1024;

/// A write: does its work on the writer's connection, inside a savepoint of its own, and learns how the group ended.
pub(super) trait Write: Send {
    /// Bytes it puts into the transaction, roughly.
    fn bytes(&self) -> usize;
    /// Does the work. Everything done is undone when this says `Failed`.
    fn run(&mut self, connection: &Connection) -> Ran;
    /// Answers the caller: with its own result if the group was committed, else with the group's error.
    fn settle(self: Box<Self>, group: Result<(), LogError>);
}

/// How the work of one write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    Done,
    Failed,
}

/// What the writer thread receives.
pub(super) enum Message {
    Write(Box<dyn Write>),
    /// Write what came before, write the WAL back, end.
    Stop,
}

/// What to do when the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenFull {
    Refuse,
    Wait,
}

/// The senders' side.
#[derive(Clone)]
pub(super) struct Queue {
    messages: mpsc::Sender<Message>,
    bytes: Arc<Semaphore>,
}

impl Queue {
    /// A queue and the writer's end of it.
    pub(super) fn new() -> (Self, mpsc::Receiver<Message>) {
        let (messages, receiver) = mpsc::channel(QUEUED_WRITES);
        (
            Self {
                messages,
                bytes: Arc::new(Semaphore::new(QUEUED_BYTES)),
            },
            receiver,
        )
    }

    /// Hands `work` to the writer and waits until it is committed. Once handed over the work is done even if the caller
    /// goes away.
    pub(super) async fn write<T, F>(&self, bytes: usize, when_full: WhenFull, work: F) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    {
        let room = self.room(bytes, when_full).await?;
        let (reply, answer) = oneshot::channel();
        let write = Message::Write(Box::new(Pending {
            work: Some(work),
            value: None,
            reply,
            bytes,
            room,
        }));
        match when_full {
            WhenFull::Wait => self.messages.send(write).await.map_err(|_| LogError::Closed)?,
            WhenFull::Refuse => self.messages.try_send(write).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => LogError::Busy,
                mpsc::error::TrySendError::Closed(_) => LogError::Closed,
            })?,
        }
        answer.await.map_err(|_| LogError::Closed)?
    }

    /// Tells the writer to end after what is queued.
    pub(super) async fn stop(&self) {
        // A closed channel means that it has ended already.
        let _ = self.messages.send(Message::Stop).await;
    }

    /// A write larger than the whole queue waits for the queue to be empty.
    async fn room(&self, bytes: usize, when_full: WhenFull) -> Result<OwnedSemaphorePermit, LogError> {
        let permits = u32::try_from(bytes.min(QUEUED_BYTES)).unwrap_or(u32::MAX);
        let bytes = Arc::clone(&self.bytes);
        match when_full {
            WhenFull::Wait => bytes.acquire_many_owned(permits).await.map_err(|_| LogError::Closed),
            WhenFull::Refuse => bytes.try_acquire_many_owned(permits).map_err(|_| LogError::Busy),
        }
    }
}

/// A write on its way.
struct Pending<T, F> {
    work: Option<F>,
    value: Option<Result<T, LogError>>,
    reply: oneshot::Sender<Result<T, LogError>>,
    bytes: usize,
    /// Held until the write is answered.
    room: OwnedSemaphorePermit,
}

impl<T, F> Write for Pending<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, LogError> + Send,
{
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn run(&mut self, connection: &Connection) -> Ran {
        let Some(work) = self.work.take() else {
            return Ran::Failed;
        };
        let value = work(connection);
        let ran = if value.is_ok() { Ran::Done } else { Ran::Failed };
        self.value = Some(value);
        ran
    }

    fn settle(self: Box<Self>, group: Result<(), LogError>) {
        drop(self.room);
        let answer = match (group, self.value) {
            // A write that failed alone keeps its own reason, whatever became of the others.
            (_, Some(Err(own))) => Err(own),
            (Err(group), _) => Err(group),
            (Ok(()), Some(value)) => value,
            (Ok(()), None) => Err(LogError::Closed),
        };
        // The caller may be gone; the write stands all the same.
        let _ = self.reply.send(answer);
    }
}
