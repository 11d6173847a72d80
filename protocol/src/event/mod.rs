//! Durable events: what a session's log holds. A kind only ever gains fields, each with a default; a changed meaning is a new
//! kind; unknown kinds are kept and sent on, and the fold ignores them.

mod words;

pub use words::*;

use crate::content::{Content, Stop, Usage};
use crate::ids::{ApprovalId, CallId, InputId, ItemId, JobId, Pos, Seq, SessionId, TurnId};
use crate::settings::{By, Limits, Mode, Settings, Unattended};
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// An event as it is stored and sent: numbered, timed, with its data as the stored bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Envelope {
    /// Number in the session's log.
    pub seq: Seq,
    /// Number in the whole store.
    pub pos: Pos,
    /// When it was decided; never goes back within a session.
    pub at: Time,
    /// Its kind, `noun.verb`.
    pub kind: String,
    /// Its data, exactly as stored.
    pub data: Box<serde_json::value::RawValue>,
}

impl Envelope {
    /// The typed event; `None` for a kind this version does not know or data it cannot read.
    pub fn event(&self) -> Option<Event> {
        Event::parse(&self.kind, self.data.get()).ok().flatten()
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $kind:literal => $name:ident { $($(#[$fdoc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            pub struct $name { $($(#[$fdoc])* pub $field: $type,)* }

            impl From<$name> for Event {
                fn from(data: $name) -> Self {
                    Self::$name(data)
                }
            }
        )*

        /// Every kind of event there is.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", content = "data")]
        pub enum Event { $($(#[$doc])* #[serde(rename = $kind)] $name($name),)* }

        impl Event {
            /// Every kind, in the order of this file.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The kind's name.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => $kind,)* }
            }

            /// The data as JSON text: what is stored.
            ///
            /// # Errors
            /// When a value cannot be written as JSON, which no event's data is.
            pub fn body(&self) -> serde_json::Result<String> {
                match self { $(Self::$name(data) => serde_json::to_string(data),)* }
            }

            /// Reads stored data. `Ok(None)` for a kind this version does not know.
            ///
            /// # Errors
            /// When the data of a known kind cannot be read.
            pub fn parse(kind: &str, body: &str) -> serde_json::Result<Option<Self>> {
                match kind {
                    $($kind => serde_json::from_str(body).map(|data| Some(Self::$name(data))),)*
                    _ => Ok(None),
                }
            }
        }
    };
}

events! {
    /// The session exists. Its environment is in the private part.
    "session.created" => SessionCreated {
        session: SessionId,
        /// Directory commands start in.
        cwd: String,
        /// The project's root.
        root: String,
        /// Further directories the session works in, without links.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added_roots: Vec<String>,
        settings: Settings,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        by: By,
    }
    /// Settings or names changed; absent fields stay as they were. A fresh environment is in the private part.
    "session.changed" => SessionChanged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// With `mode`: when it ends and the mode before holds again; absent: it does not end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode_until: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unattended: Option<Unattended>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
        /// Directories the session works in from now on, beside those it has.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added_roots: Vec<String>,
        by: By,
    }
    /// An input is durable.
    "input.accepted" => InputAccepted {
        input_id: InputId,
        content: Vec<Content>,
        delivery: Delivery,
        disposition: Disposition,
        /// Goes before everything that waits.
        #[serde(default)]
        urgent: bool,
        /// Policy of the turn it starts; absent: the session's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unattended: Option<Unattended>,
        /// Mode of the turn it starts; absent: the session's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// When that mode ends and the session's holds again; absent: with the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode_until: Option<Time>,
        /// Names of the tools the turn may use; absent: all that are offered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// Whether a person watches the answer come.
        #[serde(default)]
        interactive: bool,
        by: By,
    }
    /// An input became part of a turn.
    "input.delivered" => InputDelivered { input_id: InputId, turn: TurnId, item: ItemId, }
    /// An input has had its one terminal event.
    "input.settled" => InputSettled {
        input_id: InputId,
        outcome: InputOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    }
    /// A held queue goes on.
    "queue.resumed" => QueueResumed { by: By, }
    /// A turn began.
    "turn.started" => TurnStarted {
        turn: TurnId,
        unattended: Unattended,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode_until: Option<Time>,
        /// Names of the tools the turn may use; absent: all that are offered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        #[serde(default)]
        interactive: bool,
        by: By,
    }
    /// Somebody or a deadline asked the turn to end while tools were at work.
    "turn.interrupt_requested" => TurnInterruptRequested {
        turn: TurnId,
        outcome: TurnOutcome,
        /// The second request: kill at once.
        hard: bool,
        by: By,
    }
    /// The turn goes on in a new life of the daemon.
    "turn.resumed" => TurnResumed { turn: TurnId, lives: u32, reason: String, }
    /// The turn's one terminal event.
    "turn.completed" => TurnCompleted {
        turn: TurnId,
        outcome: TurnOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        usage: Usage,
        /// In US dollars; absent where no price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        steps: u32,
        /// Calls that were denied because nobody could answer.
        #[serde(default)]
        denied: Vec<Denied>,
        /// The built-in demo model answered.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        demo: bool,
        /// The input that starts the next turn at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<InputId>,
    }
    /// A model call begins.
    "step.started" => StepStarted {
        turn: TurnId,
        step: u32,
        attempt: u32,
        /// Name of the profile asked for, if one was; what answered stands in `step.completed`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    }
    /// A model call failed; what it had shown is void.
    "step.failed" => StepFailed {
        turn: TurnId,
        step: u32,
        attempt: u32,
        error: Reason,
        /// When it is tried again; absent: it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    }
    /// A model call's reply is complete and recorded.
    "step.completed" => StepCompleted {
        turn: TurnId,
        step: u32,
        attempt: u32,
        stop: Stop,
        /// What answered.
        model: ModelRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        manifest: Manifest,
    }
    /// A piece of a reply is complete. What the provider wants back is in the private part.
    "item.completed" => ItemCompleted {
        item: ItemId,
        turn: TurnId,
        step: u32,
        #[serde(rename = "type")]
        item_type: ItemType,
        text: String,
        status: ItemStatus,
    }
    /// The model asked for a tool call, and the policy judged it.
    "tool.requested" => ToolRequested {
        call: CallId,
        turn: TurnId,
        step: u32,
        /// Place among the calls of its step, from 0.
        index: u32,
        /// The item its arguments were streamed as.
        item: ItemId,
        tool: String,
        provider_call_id: String,
        /// The arguments; null if they could not be read.
        arguments: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        argument_error: Option<String>,
        writes: bool,
        verdict: Verdict,
        /// What it will do, for people.
        action: Action,
        /// Digest of all that will run; absent if the arguments could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    }
    /// A person is asked.
    "approval.requested" => ApprovalRequested {
        approval: ApprovalId,
        /// The call; absent when the question is whether the turn may go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        turn: TurnId,
        digest: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        action: Action,
        reason: String,
        choices: Vec<Choice>,
        /// Without a call: what the turn has reached; absent: its steps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<GoOnLimit>,
        /// What an answer for the session would cover, as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Asked in every mode: a change of mode does not answer it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        firm: bool,
        /// The same as the policy reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<Value>,
        /// The rule that the answer `always` writes into the user's own file, as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always: Option<String>,
    }
    /// The question is settled.
    "approval.resolved" => ApprovalResolved {
        approval: ApprovalId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        decision: Resolution,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        /// The allowance that was made for the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<Value>,
        /// The person's arguments in place of those that the model gave; the latter stay in `tool.requested`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// With `arguments`: digest of what runs instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// With `arguments`: what it will do instead, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<Action>,
        by: By,
    }
    /// The call may run now.
    "tool.started" => ToolStarted { call: CallId, }
    /// The call's one result.
    "tool.completed" => ToolCompleted {
        call: CallId,
        outcome: ToolOutcome,
        /// What the model sees.
        output: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Content>,
        /// The whole output where it is longer than what the model sees.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<BlobRef>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        duration_ms: u64,
        /// Files it read or wrote, with the hash of their content then.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
        /// The command goes on in the background as this job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
    }
    /// Somebody asked a command in the background to end.
    "job.stop_requested" => JobStopRequested { job: JobId, by: By, }
    /// A command in the background is over.
    "job.ended" => JobEnded {
        job: JobId,
        /// The call that started it.
        call: CallId,
        outcome: ToolOutcome,
        /// What the model sees of its output.
        output: String,
        /// The whole output where it is longer than what the model sees.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<BlobRef>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        duration_ms: u64,
    }
    /// The model's list of what it means to do, the whole of it.
    "todo.changed" => TodoChanged { items: Vec<TodoItem>, }
    /// Something a person should know.
    "notice.added" => NoticeAdded { code: String, level: NoticeLevel, text: String, }
}

impl TurnCompleted {
    /// Whether inputs that wait behind this turn go on waiting until somebody acts: it was interrupted, and nothing urgent follows.
    pub fn holds_the_queue(&self) -> bool {
        self.outcome == TurnOutcome::Interrupted && self.next.is_none()
    }
}
