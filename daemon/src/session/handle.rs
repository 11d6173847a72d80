//! What the rest of the daemon holds of a session: its mailbox, what it shows, who is there.

use super::input::{Change, Edited, Send};
use super::live::{Live, Presence, Publisher};
use super::place::LazyPlace;
use crate::auth::Redactor;
use crate::config::Project;
use crate::tool::Tool;
use protocol::event::Choice;
use protocol::method::{Answered, Interrupted, Sent};
use protocol::{ApprovalId, By, ErrorKind, InputId, RpcError, TurnId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Requests that may wait for a session; beyond it clients are told to come again.
pub(crate) const MAILBOX: usize = 64;

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, RpcError>>;

/// What a client asks of a session.
pub(crate) enum Message {
    Send(Box<Sending>, Reply<Sent>),
    CancelInput(InputId, By, Reply<()>),
    ResumeQueue(By, Reply<()>),
    Interrupt(Option<TurnId>, By, Reply<Interrupted>),
    /// The call that an approval is about, for somebody who wants to change it.
    Look(ApprovalId, Reply<Asked>),
    Answer(Box<AnswerRequest>, Reply<Answered>),
    Change(Box<Change>, Reply<()>),
    /// The environment of the client that attached, for commands of later turns.
    Refresh(BTreeMap<String, String>, By),
    ResumeTurn(Reply<()>),
    /// Ends the actor: the daemon stops, or the session is deleted.
    Close(Reply<()>),
}

/// An input, with what its project's file says now, or why that cannot be read.
#[derive(Clone)]
pub(crate) struct Sending {
    pub(crate) send: Send,
    pub(crate) project: Result<Project, RpcError>,
}

/// An answer to an approval, as it came.
pub(crate) struct AnswerRequest {
    pub(crate) id: ApprovalId,
    pub(crate) digest: String,
    pub(crate) decision: Choice,
    pub(crate) feedback: Option<String>,
    /// The call as the person changed it.
    pub(crate) edited: Option<Edited>,
    pub(crate) by: By,
}

/// A call that waits for an answer, with what it takes to look at it again.
pub(crate) struct Asked {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) place: LazyPlace,
    /// As they stand now.
    pub(crate) arguments: serde_json::Value,
    pub(crate) redactor: Redactor,
}

/// A session that lives. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    mailbox: mpsc::Sender<Message>,
    publisher: Publisher,
    pub(crate) presence: Arc<Presence>,
}

/// The session's actor is gone; opening it again starts another.
#[derive(Debug)]
pub(crate) struct Gone;

impl Handle {
    pub(crate) fn new(mailbox: mpsc::Sender<Message>, publisher: Publisher, presence: Arc<Presence>) -> Self {
        Self {
            mailbox,
            publisher,
            presence,
        }
    }

    /// Whether its actor takes requests.
    pub(crate) fn alive(&self) -> bool {
        !self.mailbox.is_closed()
    }

    /// What it shows.
    pub(crate) fn live(&self) -> watch::Receiver<Arc<Live>> {
        self.publisher.subscribe()
    }

    /// Waits until `live` shows something new.
    ///
    /// # Errors
    /// The actor is gone, and everything it showed was seen.
    pub(crate) async fn changed(&self, live: &mut watch::Receiver<Arc<Live>>) -> Result<(), Gone> {
        tokio::select! {
            biased;
            changed = live.changed() => changed.map_err(|_| Gone),
            // This handle can show things too, so the actor's end does not close what it shows.
            () = self.mailbox.closed() => Err(Gone),
        }
    }

    /// Tells the actor to end, once there is room.
    pub(crate) async fn close(&self, reply: Reply<()>) {
        // An actor that has ended already needs no telling, and drops the reply.
        let _ = self.mailbox.send(Message::Close(reply)).await;
    }

    /// Puts a request into the mailbox without waiting for an answer.
    pub(crate) fn tell(&self, message: Message) -> Result<(), Tell> {
        self.mailbox.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Tell::Busy(busy()),
            mpsc::error::TrySendError::Closed(_) => Tell::Gone,
        })
    }
}

/// Why a request was not taken.
#[derive(Debug)]
pub(crate) enum Tell {
    Busy(RpcError),
    Gone,
}

/// The answer when a queue is full.
pub(crate) fn busy() -> RpcError {
    RpcError::new(ErrorKind::Busy, "the session has too many requests waiting")
        .hint("try again in a moment")
        .with("retry_after_ms", 200)
}
