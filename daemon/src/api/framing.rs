//! JSON lines: one message a line, bounded in size, in time and in memory over all connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Largest message, its newline not counted.
pub(crate) const MESSAGE_BYTES: usize = 16 << 20;

/// Time from a message's first byte to its newline.
const MESSAGE_TIME: Duration = Duration::from_secs(30);

/// Bytes of unfinished messages over all connections.
const INBOUND_BYTES: usize = 64 << 20;

/// A message is given memory in pieces of this size, so that its sender has to send before we hold.
const PIECE_BYTES: usize = 64 << 10;

/// Memory that unfinished messages may take, shared by all connections.
#[derive(Debug, Clone)]
pub(crate) struct Inbound(Arc<Semaphore>);

impl Default for Inbound {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(INBOUND_BYTES / PIECE_BYTES)))
    }
}

/// What came.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Vec<u8>),
    /// A message over the limit; it was skipped up to its newline.
    TooLarge,
    /// The peer sends no more.
    Closed,
}

/// Reads the next message.
///
/// # Errors
/// A read that fails, or a message that does not end in time.
pub(crate) async fn next<R: AsyncBufRead + Unpin>(reader: &mut R, inbound: &Inbound) -> io::Result<Incoming> {
    if reader.fill_buf().await?.is_empty() {
        return Ok(Incoming::Closed);
    }
    timeout(MESSAGE_TIME, rest(reader, inbound))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "a message was begun and not finished"))?
}

async fn rest<R: AsyncBufRead + Unpin>(reader: &mut R, inbound: &Inbound) -> io::Result<Incoming> {
    let mut message = Vec::new();
    let mut held: Vec<OwnedSemaphorePermit> = Vec::new();
    let mut over = false;
    loop {
        let piece = reader.fill_buf().await?;
        if piece.is_empty() {
            return Ok(finish(message, over));
        }
        let newline = piece.iter().position(|byte| *byte == b'\n');
        let taken = newline.unwrap_or(piece.len());
        over |= message.len() + taken > MESSAGE_BYTES;
        if over {
            message = Vec::new();
            held.clear();
        } else {
            message.extend_from_slice(piece.get(..taken).unwrap_or_default());
        }
        reader.consume(taken + usize::from(newline.is_some()));
        if newline.is_some() {
            return Ok(finish(message, over));
        }
        // The buffer of the reader bounds what comes before memory is asked for.
        if message.len() > (held.len() + 1) * PIECE_BYTES
            && let Ok(permit) = Arc::clone(&inbound.0).acquire_owned().await
        {
            held.push(permit);
        }
    }
}

fn finish(message: Vec<u8>, over: bool) -> Incoming {
    if over {
        Incoming::TooLarge
    } else {
        Incoming::Message(message)
    }
}
