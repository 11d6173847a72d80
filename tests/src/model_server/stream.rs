//! What a reply is made of on its way out: chunks, fresh ids, and the memory of signed thinking.

use super::script::{End, Gate};
use axum::body::Body;
use futures::stream;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// One piece of a body.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) text: String,
    /// It waits for the reply's gate.
    paced: bool,
}

impl Chunk {
    pub(super) fn at_once(text: String) -> Self {
        Self { text, paced: false }
    }

    pub(super) fn paced(text: String) -> Self {
        Self { text, paced: true }
    }
}

/// Makes ids that no other reply of this server has.
#[derive(Debug, Default)]
pub(super) struct Fresh(AtomicU64);

impl Fresh {
    pub(super) fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:06}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Thinking that was signed: it must come back unchanged.
#[derive(Debug, Default)]
pub(super) struct Issued(Mutex<HashMap<String, String>>);

impl Issued {
    pub(super) fn sign(&self, signature: &str, thought: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(signature.into(), thought.into());
    }

    pub(super) fn signed(&self, signature: &str, thought: &str) -> bool {
        let signed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signed.get(signature).is_some_and(|signed| signed == thought)
    }
}

/// Counts bodies that the client left before their end.
struct Leaving {
    left: watch::Sender<usize>,
    whole: bool,
}

impl Leaving {
    /// The body came to its end.
    fn done(mut self) {
        self.whole = true;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if !self.whole {
            self.left.send_modify(|left| *left += 1);
        }
    }
}

/// The body that says `chunks` at the pace of `gate` and then ends as `end` says.
pub(super) fn body(chunks: Vec<Chunk>, gate: Option<Gate>, end: End, left: watch::Sender<usize>) -> Body {
    let leaving = Some(Leaving { left, whole: false });
    let state = (VecDeque::from(chunks), gate, end, leaving);
    Body::from_stream(stream::unfold(state, |(mut chunks, gate, end, leaving)| async move {
        if let Some(chunk) = chunks.pop_front() {
            match &gate {
                Some(gate) if chunk.paced => gate.pass().await,
                _ => {}
            }
            return Some((Ok(chunk.text), (chunks, gate, end, leaving)));
        }
        if matches!(end, End::Stall) {
            return std::future::pending().await;
        }
        if let Some(leaving) = leaving {
            leaving.done();
        }
        let broken = io::Error::new(io::ErrorKind::ConnectionAborted, "the script breaks the connection");
        matches!(end, End::Drop).then_some((Err(broken), (chunks, gate, End::Done, None)))
    }))
}
