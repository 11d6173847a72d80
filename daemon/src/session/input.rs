//! Everything that can wake a session: what clients ask, how effects end, what time brings. One closed enum; whatever a decision
//! needs beside the state stands in the input or in its context.

use super::decide::budget::Budget;
use super::drain::Draining;
use super::wanted::ModelKey;
use crate::policy::{Facts, Grant, Rule};
use crate::tool::Outcome;
use protocol::event::{
    Action, ApprovalRequested, BlobRef, Choice, Delivery, ItemStatus, ItemType, Manifest, ModelRef, Produced, Reason,
    SessionChanged, TodoItem, ToolOutcome, ToolRequested,
};
use protocol::{ApprovalId, By, CallId, Content, InputId, JobId, Mode, Stop, Time, TurnId, Unattended, Usage};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What woke the session.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Send(Send),
    Cancel {
        input_id: InputId,
        by: By,
    },
    ResumeQueue {
        by: By,
    },
    Interrupt {
        turn: Option<TurnId>,
        by: By,
    },
    /// A command in the background is to end.
    StopJob {
        job: JobId,
        by: By,
    },
    Answer(Box<Answer>),
    Change(Box<Change>),
    /// A new environment for commands, only between turns.
    Refresh {
        environment: BTreeMap<String, String>,
        by: By,
    },
    ModelReplied(Box<Replied>),
    ModelFailed(Box<Failed>),
    ToolEnded(Box<ToolEnd>),
    JobEnded(Box<JobEnd>),
    /// The earliest deadline of the state is over.
    Deadline,
    /// Nobody who could answer was there for as long as the policy waits.
    Unattended,
    /// The log was read after a start of the daemon, or after a failed append.
    Restarted,
}

/// An input of a person or script.
#[derive(Debug, Clone)]
pub(crate) struct Send {
    pub(crate) input_id: InputId,
    pub(crate) content: Vec<Content>,
    pub(crate) delivery: Delivery,
    pub(crate) mode: Option<Mode>,
    /// How long that mode holds; none: as long as the turn.
    pub(crate) mode_for_ms: Option<u64>,
    pub(crate) unattended: Option<Unattended>,
    /// Names of the tools its turn may use; none: all.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) interactive: bool,
    pub(crate) by: By,
}

impl Send {
    /// When its mode ends if it is decided at `at`; none: with its turn.
    pub(crate) fn mode_until(&self, at: Time) -> Option<Time> {
        self.mode.and(self.mode_for_ms).map(|ms| at.plus_ms(ms))
    }
}

/// What somebody wants to be otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Without the end of its mode, which the session's own clock tells.
    pub(crate) changed: SessionChanged,
    /// How long its mode holds; none: until it is changed again.
    pub(crate) mode_for_ms: Option<u64>,
}

/// An answer to an approval that waits.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) approval: ApprovalId,
    pub(crate) decision: Choice,
    pub(crate) feedback: Option<String>,
    /// The request as it was recorded: it holds the allowance that `session` makes.
    pub(crate) request: ApprovalRequested,
    /// The call as the person changed it.
    pub(crate) edited: Option<Box<Edited>>,
    pub(crate) by: By,
}

/// A call as a person changed it.
#[derive(Debug, Clone)]
pub(crate) struct Edited {
    pub(crate) arguments: Value,
    pub(crate) inspected: Inspected,
    pub(crate) reach: Reach,
}

/// Whether a changed call does what was shown, on other things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Within,
    Beyond,
}

/// A model call's whole reply.
#[derive(Debug, Clone)]
pub(crate) struct Replied {
    pub(crate) key: ModelKey,
    /// In reply order.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) stop: Stop,
    pub(crate) model: ModelRef,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost: Option<f64>,
    pub(crate) manifest: Manifest,
    pub(crate) room: Room,
    /// What a person should know of the project's instructions.
    pub(crate) remark: Option<String>,
}

/// How much context a model takes and how much a call used of it, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// To stay below; 0: nobody counts.
    pub(crate) budget: u64,
    /// Of the request, estimated.
    pub(crate) request: u64,
    /// Of the reply, estimated.
    pub(crate) reply: u64,
    /// What a person should know about the budget, if it rests on a guess.
    pub(crate) doubt: Option<String>,
}

/// A piece of a reply.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Item { index: usize, item: Item },
    Call { index: usize, call: Box<RequestedCall> },
}

/// Text, reasoning and the like.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) item_type: ItemType,
    pub(crate) text: String,
    pub(crate) status: ItemStatus,
    /// What the provider wants back.
    pub(crate) private: Option<Value>,
}

/// A call as the model asked for it, with what its tool found out about it.
#[derive(Debug, Clone)]
pub(crate) struct RequestedCall {
    pub(crate) tool: String,
    pub(crate) provider_call_id: String,
    pub(crate) arguments: Value,
    pub(crate) private: Option<Value>,
    /// What the call would do, or what is wrong with its arguments.
    pub(crate) inspected: Result<Inspected, String>,
}

/// What a call would do.
#[derive(Debug, Clone)]
pub(crate) struct Inspected {
    pub(crate) facts: Facts,
    pub(crate) action: Action,
    pub(crate) digest: String,
    pub(crate) writes: bool,
}

/// A model call that failed.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    pub(crate) key: ModelKey,
    pub(crate) error: Reason,
    pub(crate) retry: Retry,
    pub(crate) usage: Option<Usage>,
}

/// Whether trying again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Never,
    /// Not before this much time, if the provider said so.
    After(Option<Duration>),
}

/// How a tool call ended.
#[derive(Debug, Clone)]
pub(crate) struct ToolEnd {
    pub(crate) call: CallId,
    pub(crate) outcome: Outcome,
    pub(crate) output: String,
    pub(crate) images: Vec<Content>,
    pub(crate) blob: Option<BlobRef>,
    pub(crate) produced: Option<Produced>,
    pub(crate) diff: Option<String>,
    pub(crate) exit_code: Option<i32>,
    /// The list of what is to be done, if the call replaced it.
    pub(crate) todo: Option<Vec<TodoItem>>,
    /// The job that its command goes on as.
    pub(crate) job: Option<JobId>,
    pub(crate) duration_ms: u64,
    pub(crate) files: BTreeMap<String, String>,
}

/// How a command in the background ended.
#[derive(Debug, Clone)]
pub(crate) struct JobEnd {
    pub(crate) job: JobId,
    pub(crate) outcome: ToolOutcome,
    pub(crate) output: String,
    pub(crate) blob: Option<BlobRef>,
    pub(crate) produced: Option<Produced>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) duration_ms: u64,
}

/// What a decision may look at beside state and input.
pub(crate) struct Context<'a> {
    /// The session's clock: never before the state's last event.
    pub(crate) at: Time,
    /// Makes ids of approvals.
    pub(crate) new_id: &'a dyn Fn() -> String,
    /// Between 0 and 1, for the jitter of retries.
    pub(crate) jitter: f64,
    /// How often a model call is tried again.
    pub(crate) retries: u32,
    /// The rules that hold for the session's project.
    pub(crate) rules: &'a [Rule],
    /// Whether the built-in list of read-only commands runs without asking.
    pub(crate) builtin_allow: bool,
    /// What the running model call has shown so far, by place in the reply.
    pub(crate) shown: Vec<(usize, ItemType, String)>,
    /// The calls of the running step as they were asked for, by id.
    pub(crate) calls: &'a BTreeMap<CallId, ToolRequested>,
    /// What of the project's own file does not count.
    pub(crate) project_notice: Option<String>,
    /// What model calls may cost.
    pub(crate) budget: Budget,
    /// What is wrong with the configuration's file as it is now.
    pub(crate) config_fault: Option<String>,
    /// Whether the daemon's end has begun: then no turn starts.
    pub(crate) draining: Draining,
    /// What is to be said about the model that would be chosen now, if no person named it.
    pub(crate) announce: Option<String>,
}

/// The allowance in a request, as the policy reads it.
pub(crate) fn grant_of(request: &ApprovalRequested) -> Option<Grant> {
    request
        .grant
        .as_ref()
        .and_then(|grant| serde_json::from_value(grant.clone()).ok())
}
