//! What the app wants done outside of itself, and what came of it. The app decides, `run` and `link` carry out.

use protocol::client::ClientError;
use protocol::event::{Choice, Delivery};
use protocol::frame::ApprovalView;
use protocol::method::{LocalServer, ModelInfo, SessionInfo, UpdateParams};
use protocol::{InputId, JobId, SessionId, TurnId};

/// What the app wants done.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A call to the daemon; its [`Reply`] comes later, in the order of the calls.
    Call(Request),
    /// Follow another session from now on.
    Follow(Box<SessionInfo>),
    /// Give the terminal back until the shell continues this process.
    Suspend,
    /// Call the person, who may look elsewhere, with these bytes.
    Ring(String),
    /// Draw everything again.
    Redraw,
    /// Leave.
    Leave,
}

/// A call to the daemon. Each can be made twice with the effect of once, so that it may be repeated after a lost connection.
#[derive(Debug)]
pub(crate) enum Request {
    Send {
        session: SessionId,
        input_id: InputId,
        text: String,
        delivery: Delivery,
    },
    Answer {
        approval: Box<ApprovalView>,
        decision: Choice,
        feedback: Option<String>,
        /// The call as the person changed it.
        arguments: Option<serde_json::Value>,
    },
    /// A command in the background is to end.
    KillJob {
        session: SessionId,
        job: JobId,
    },
    Interrupt {
        session: SessionId,
        turn: TurnId,
    },
    Update(Box<UpdateParams>),
    /// The session is to work in a further directory, named from where the person stands.
    AddRoot {
        session: SessionId,
        dir: String,
        /// Directories it had beside its root when this was asked for.
        known: usize,
    },
    CancelQueued {
        session: SessionId,
        input_id: InputId,
    },
    ResumeQueue(SessionId),
    ResumeTurn(SessionId),
    /// The sessions of this directory's project.
    Sessions,
    Models,
    /// Lets the server of this machine that was shown answer.
    Confirm(Box<LocalServer>),
    Open(Which),
    Delete(SessionId),
}

/// Which session to open.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    New,
    /// An id, a piece of one, a name, or `last`.
    Named(String),
}

/// What came of a call.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It is done; the session's events tell the rest.
    Done,
    Sessions(Vec<SessionInfo>),
    Models(Vec<ModelInfo>),
    Confirmed(Box<LocalServer>),
    /// The directory lies in one that the session works in already.
    Within(String),
    Opened {
        info: Box<SessionInfo>,
        which: Which,
    },
    Failed {
        request: Request,
        error: ClientError,
    },
}

/// What came of following a session.
#[derive(Debug)]
pub(crate) enum News {
    Frame(protocol::Frame),
    /// The connection is gone; it is tried again.
    Lost(String),
    /// Following cannot go on.
    Failed(ClientError),
}
