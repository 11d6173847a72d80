//! Frames: what an attached client receives. `kind` tells them apart: the kind of an event holds a dot, that of any other
//! frame does not.

use crate::content::Usage;
use crate::event::{Action, Choice, Envelope, ItemType, TodoItem};
use crate::ids::{ApprovalId, CallId, InputId, ItemId, JobId, Seq, SessionId, TurnId};
use crate::settings::{By, Mode, Settings};
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One frame of a subscription.
#[derive(Debug, Clone)]
pub enum Frame {
    /// An event of the log.
    Event(Envelope),
    /// The session as it is at the head: the mark "caught up". History before it must not be applied to it.
    Snapshot(Box<Snapshot>),
    /// More text of an open item.
    Delta(Delta),
    /// Who is attached.
    Presence(Presence),
    /// The subscription is over.
    End(End),
    /// A kind this version does not know.
    Unknown(Box<RawValue>),
}

#[derive(Serialize, Deserialize)]
struct Tagged<T> {
    kind: Box<str>,
    #[serde(flatten)]
    data: T,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tagged = |kind: &str| kind.into();
        match self {
            Self::Event(envelope) => envelope.serialize(serializer),
            Self::Snapshot(data) => Tagged {
                kind: tagged("snapshot"),
                data,
            }
            .serialize(serializer),
            Self::Delta(data) => Tagged {
                kind: tagged("delta"),
                data,
            }
            .serialize(serializer),
            Self::Presence(data) => Tagged {
                kind: tagged("presence"),
                data,
            }
            .serialize(serializer),
            Self::End(data) => Tagged {
                kind: tagged("end"),
                data,
            }
            .serialize(serializer),
            Self::Unknown(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let Kind { kind } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let frame = match kind.as_ref() {
            kind if kind.contains('.') => serde_json::from_str(raw.get()).map(Self::Event),
            "snapshot" => serde_json::from_str(raw.get()).map(Self::Snapshot),
            "delta" => serde_json::from_str(raw.get()).map(Self::Delta),
            "presence" => serde_json::from_str(raw.get()).map(Self::Presence),
            "end" => serde_json::from_str(raw.get()).map(Self::End),
            _ => return Ok(Self::Unknown(raw)),
        };
        frame.map_err(D::Error::custom)
    }
}

/// The session as it is at `head`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    pub session: SessionId,
    /// The last event it includes.
    pub head: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub cwd: String,
    pub root: String,
    /// Further directories the session works in, without links, in the order they were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added_roots: Vec<String>,
    pub settings: Settings,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnView>,
    pub open: Vec<OpenItem>,
    pub calls: Vec<CallView>,
    pub approvals: Vec<ApprovalView>,
    pub queue: Vec<QueuedInput>,
    /// The queue waits for somebody to resume it.
    pub held: bool,
    /// What the model means to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<TodoItem>,
    /// Commands in the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobView>,
    pub usage: Usage,
    /// What the model calls of all turns cost, in US dollars; absent where no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What commands run in; absent: nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxView>,
    pub presence: Vec<ClientView>,
}

/// What a session's commands run in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxView {
    /// `workspace-write`, `read-only`, `off`: what is really enforced.
    pub mode: String,
    /// Whether they reach the network.
    pub network: bool,
    /// The machine can make a part of it only.
    pub reduced: bool,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// No turn runs.
    #[default]
    Idle,
    /// A model call is under way, or waits to be tried again.
    Calling,
    /// Tool calls run or wait.
    Acting,
    /// The turn ends as soon as its running tools have.
    Stopping,
    /// A turn from an earlier life waits for somebody to resume it.
    Parked,
}

impl Phase {
    /// The phase's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Calling => "calling",
            Self::Acting => "acting",
            Self::Stopping => "stopping",
            Self::Parked => "parked",
        }
    }
}

/// The turn that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnView {
    pub turn: TurnId,
    pub step: u32,
    pub attempt: u32,
    /// The model call failed and is tried again then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    pub started_at: Time,
    /// Its own mode, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// When that ends and the session's holds again; absent: with the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_until: Option<Time>,
    pub by: By,
}

/// An item that still grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenItem {
    pub item: ItemId,
    #[serde(rename = "type")]
    pub item_type: OpenType,
    pub stream: Stream,
    /// Where `text` begins in the item's stream, in bytes: open text is the last 64 KiB.
    pub offset: u64,
    pub text: String,
    /// The tool, for calls and their output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// What an open item will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenType {
    Text,
    Reasoning,
    Refusal,
    Opaque,
    /// A tool call whose arguments come, or whose output does.
    Call,
}

impl From<ItemType> for OpenType {
    fn from(item: ItemType) -> Self {
        match item {
            ItemType::Text => Self::Text,
            ItemType::Reasoning => Self::Reasoning,
            ItemType::Refusal => Self::Refusal,
            ItemType::Opaque => Self::Opaque,
        }
    }
}

/// Which stream of an item a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Text,
    Arguments,
    Output,
}

/// More of an open item. With deltas on, what a client has of an item's text from snapshot and deltas is its whole text when
/// its `item.completed` comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// The item, or the call whose output grows.
    pub item: ItemId,
    #[serde(rename = "type")]
    pub item_type: OpenType,
    pub stream: Stream,
    /// Where `text` begins, in bytes of this stream. A gap is only possible in a tool's output, whose middle is not kept.
    pub offset: u64,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// The state of a call that is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// A person is asked.
    Asked,
    /// It may run when what goes before it is done.
    Ready,
    Running,
    Done,
}

/// A call of the running step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallView {
    pub call: CallId,
    pub tool: String,
    pub state: CallState,
    pub action: Action,
    pub arguments: serde_json::Value,
}

/// A command in the background. Its output is the open item of the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobView {
    pub job: JobId,
    /// The call that started it.
    pub call: CallId,
    /// What runs. Untrusted text: show it through `display` only.
    pub command: String,
    /// When it went to the background.
    pub started_at: Time,
}

/// A pending approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// The approval's id.
    pub id: ApprovalId,
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    pub turn: TurnId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub digest: String,
    pub action: Action,
    pub reason: String,
    pub choices: Vec<Choice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The rule that the answer `always` writes into the user's own file, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    pub requested_at: Time,
    pub cwd: String,
}

/// An input that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedInput {
    pub input_id: InputId,
    /// Its first 200 characters.
    pub text: String,
    /// Joins the running turn, rather than starting one.
    pub steer: bool,
    pub by: By,
    pub at: Time,
}

/// An attached client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientView {
    pub name: String,
    pub kind: String,
    pub pid: Option<i32>,
    pub role: Role,
}

/// What a client may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Act and watch.
    Controller,
    /// Watch.
    #[default]
    Observer,
    /// Started by a tool of this daemon: may watch, never answer or change anything.
    Tool,
}

/// Everybody who is attached, the whole list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Presence {
    pub clients: Vec<ClientView>,
}

/// Why a subscription is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The session was deleted.
    Deleted,
    /// The daemon stops.
    Shutdown,
    /// The session's log cannot be read: what stands there makes no sense.
    Unreadable,
    /// The store failed when the log was read; it may go well again.
    Storage,
}

/// The last frame of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    pub reason: EndReason,
    /// Attach again with this as `after_seq`; nothing is lost.
    pub resume_after: Seq,
}

/// An event of any session, as `session.watch` and `approval.watch` send it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchedEvent {
    pub session: SessionId,
    #[serde(flatten)]
    pub event: WatchedEnvelope,
}

/// The envelope of a watched event. Flattening rules out raw JSON, so `data` is a value here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchedEnvelope {
    pub seq: Seq,
    pub pos: crate::ids::Pos,
    pub at: Time,
    pub kind: String,
    pub data: serde_json::Value,
}
