//! Every operation: its name, what it takes, what it answers. This one table gives the daemon its handlers' types, the client
//! its calls and `agentctl schema` its text.

use crate::content::{Content, Usage};
use crate::event::{Choice, Delivery, Denied, Disposition, InputOutcome, Reason, Resolution, TurnOutcome};
use crate::frame::{ApprovalView, Frame, Phase, QueuedInput, Role, WatchedEvent};
use crate::ids::{ApprovalId, InputId, Pos, Seq, SessionId, TurnId};
use crate::settings::{By, Limits, Mode, Unattended};
use crate::time::Time;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a client needs for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody of the same user.
    Watch,
    /// A controller.
    Act,
}

/// An operation with one answer.
pub trait Method {
    /// `resource.verb`.
    const NAME: &'static str;
    /// Who may call it.
    const ACCESS: Access;
    /// Its parameters, an object.
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// Its answer.
    type Answer: Serialize + DeserializeOwned + JsonSchema + Send + Clone + 'static;
}

/// An operation that answers a subscription id and then notifications named [`Subscription::NOTIFICATION`] with
/// `{subscription, result}`, until it ends or the client calls [`Subscription::CANCEL`] with `[subscription]`.
pub trait Subscription {
    const NAME: &'static str;
    const NOTIFICATION: &'static str;
    const CANCEL: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// What a notification carries.
    type Item: Serialize + DeserializeOwned + Send + 'static;
}

macro_rules! methods {
    ($($(#[$doc:meta])* $access:ident $name:literal => $method:ident($params:ty) -> $answer:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $method {}

            impl Method for $method {
                const NAME: &'static str = $name;
                const ACCESS: Access = Access::$access;
                type Params = $params;
                type Answer = $answer;
            }
        )*

        /// Calls `visit` with each method's name, and the schemas of its parameters and its answer.
        pub fn each_method(
            generator: &mut schemars::SchemaGenerator,
            mut visit: impl FnMut(&'static str, schemars::Schema, schemars::Schema),
        ) {
            $(visit($name, generator.subschema_for::<$params>(), generator.subschema_for::<$answer>());)*
        }
    };
}

methods! {
    /// The handshake. Without it, or without the right token, a client may watch only.
    Watch "daemon.hello" => DaemonHello(HelloParams) -> Hello;
    Watch "daemon.status" => DaemonStatus(Empty) -> DaemonStatusAnswer;
    /// Takes no new turn, waits for the running ones up to a time, then stops; what still runs goes on at the next start.
    Act "daemon.stop" => DaemonStop(StopParams) -> Empty;
    Act "session.create" => SessionCreate(CreateParams) -> SessionInfo;
    /// The newest use first.
    Watch "session.list" => SessionList(ListParams) -> SessionPage;
    /// Finds one session by full id, by an unambiguous piece of it at its start or end of 4 or more characters, by name, or
    /// `last`: the one of this project with the newest event.
    Watch "session.get" => SessionGet(GetParams) -> SessionInfo;
    Act "session.update" => SessionUpdate(UpdateParams) -> SessionInfo;
    Act "session.delete" => SessionDelete(DeleteParams) -> Empty;
    /// Answers when the input is durable.
    Act "session.send" => SessionSend(SendParams) -> Sent;
    /// Answers when the input, or the turn, has had its terminal event. Does not hold up later requests.
    Watch "turn.wait" => TurnWait(WaitParams) -> TurnResult;
    /// Does nothing if the turn is over already.
    Act "turn.interrupt" => TurnInterrupt(InterruptParams) -> Interrupted;
    /// A parked turn goes on.
    Act "turn.resume" => TurnResume(SessionParams) -> Empty;
    /// Turns that run or are parked, of all sessions.
    Watch "turn.list" => TurnList(Empty) -> Vec<RunningTurn>;
    Watch "queue.list" => QueueList(SessionParams) -> Queue;
    Act "queue.cancel" => QueueCancel(QueueCancelParams) -> Empty;
    Act "queue.resume" => QueueResume(SessionParams) -> Empty;
    /// Pending approvals, of one session or of all, the oldest first.
    Watch "approval.list" => ApprovalList(ApprovalListParams) -> Vec<ApprovalView>;
    /// The first answer wins; a later one gets `already_resolved`.
    Act "approval.answer" => ApprovalAnswer(AnswerParams) -> Answered;
    /// Every tool, also those that models are not offered.
    Watch "tool.list" => ToolList(Empty) -> Vec<ToolInfo>;
}

macro_rules! subscriptions {
    ($($(#[$doc:meta])* $name:literal, $cancel:literal => $notification:literal: $subscription:ident($params:ty) -> $item:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $subscription {}

            impl Subscription for $subscription {
                const NAME: &'static str = $name;
                const NOTIFICATION: &'static str = $notification;
                const CANCEL: &'static str = $cancel;
                type Params = $params;
                type Item = $item;
            }
        )*

        /// Calls `visit` with each subscription's name, notification, cancel method and the schema of its parameters.
        pub fn each_subscription(
            generator: &mut schemars::SchemaGenerator,
            mut visit: impl FnMut(&'static str, &'static str, &'static str, schemars::Schema),
        ) {
            $(visit($name, $notification, $cancel, generator.subschema_for::<$params>());)*
        }
    };
}

subscriptions! {
    /// History on request, then a snapshot, then live: see `frame`.
    "session.attach", "session.detach" => "session.frame": SessionAttach(AttachParams) -> Frame;
    /// Sessions made, changed, deleted, turns begun and ended, of all sessions, by `pos`.
    "session.watch", "session.unwatch" => "session.event": SessionWatch(WatchParams) -> WatchedEvent;
    /// Approvals requested and resolved, of all sessions, by `pos`.
    "approval.watch", "approval.unwatch" => "approval.event": ApprovalWatch(WatchParams) -> WatchedEvent;
}

/// Takes or answers nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Who a client is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HelloParams {
    /// The protocol's version the client speaks, `major.minor`.
    pub version: String,
    /// The client's name, at most 64 bytes.
    pub client: String,
    /// What it is: `tui`, `cli`, `script`, …
    pub kind: String,
    /// Content of `token` in the state directory. Absent: the client may watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// It can answer approvals and has a person before it.
    #[serde(default)]
    pub answers: bool,
    /// Asks for less than the token gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The client's environment, for the sessions it creates; names outside the list are dropped.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Values of the key variables that an earlier `hello` said profiles lack. Kept in memory only.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
}

/// The daemon's side of the handshake.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The protocol's version the daemon speaks.
    pub version: String,
    /// The daemon's own version.
    pub daemon: String,
    pub role: Role,
    /// Names of optional parts of the protocol that are there.
    pub capabilities: Vec<String>,
    pub limits: ProtocolLimits,
    /// Names of environment variables that profiles take their key from and that nobody has sent yet.
    pub lacks: Vec<String>,
    /// What answers when a session names no model, and why; for people.
    pub model_notice: Option<String>,
}

/// Bounds of the transport.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolLimits {
    pub message_bytes: u64,
    pub batch: u32,
    pub calls_in_flight: u32,
    pub subscriptions: u32,
    pub queued_inputs: u32,
}

/// The daemon about itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatusAnswer {
    pub version: String,
    pub protocol: String,
    pub pid: u32,
    pub socket: String,
    pub state_dir: String,
    pub started_at: Time,
    pub clients: u32,
    pub sessions_open: u32,
    pub turns_running: u32,
    pub approvals_pending: u32,
    pub draining: bool,
    /// Whether the log takes writes.
    pub storage_ok: bool,
}

/// How the daemon stops.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopParams {
    /// Time running turns get to end, in milliseconds; then they are parked. 30 s if absent.
    pub drain_ms: Option<u64>,
}

/// A new session.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateParams {
    /// A UUIDv7 made by the client, so that it can retry safely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Directory commands start in; absolute. The project's root is found from it.
    pub cwd: String,
    /// `[A-Za-z][A-Za-z0-9._-]{0,63}`, not `last`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended: Option<Unattended>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

/// A session in lists.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    pub id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first line of its first input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub cwd: String,
    pub root: String,
    /// Name of the model's profile; absent: chosen at each turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub mode: Mode,
    pub phase: Phase,
    pub head: Seq,
    pub created_at: Time,
    pub updated_at: Time,
    /// Approvals that wait.
    pub approvals: u32,
    /// How its last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TurnOutcome>,
    #[serde(default)]
    pub archived: bool,
}

/// Which sessions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListParams {
    /// Only those of the project this directory belongs to.
    pub cwd: Option<String>,
    /// At most this many, 20 if absent, 200 at most.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionPage {
    pub sessions: Vec<SessionInfo>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    pub session: String,
    /// Where the person stands; `last` needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// A session, as `session.get` finds it, `last` excepted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    pub session: String,
}

/// Changes of a session; absent fields stay.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateParams {
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended: Option<Unattended>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// Which session to delete.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteParams {
    pub session: String,
    /// Interrupts an open turn instead of refusing.
    #[serde(default)]
    pub force: bool,
}

/// An input.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    pub session: String,
    /// Made by the client if it wants to retry safely; at most 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_id: Option<InputId>,
    pub content: Vec<Content>,
    #[serde(default)]
    pub delivery: Delivery,
    /// Mode of the turn this input starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended: Option<Unattended>,
    /// Bound of the turn this input starts; time in which only people are waited for does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// A person watches the answer come.
    #[serde(default)]
    pub interactive: bool,
}

/// The input is durable.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    pub input_id: InputId,
    pub seq: Seq,
    pub disposition: Disposition,
    /// The turn it started or joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// What to wait for: exactly one of `input_id` and `turn`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_id: Option<InputId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// How a turn, or an input, ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnResult {
    pub session: SessionId,
    /// How the input ended; the turn's outcome in these words if a turn was asked for.
    pub status: InputOutcome,
    /// Absent for an input that was cancelled before its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Text of the step that ended the turn.
    pub text: String,
    pub denied: Vec<Denied>,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    pub steps: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo: bool,
    /// Who ended it, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

/// Which turn to end.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptParams {
    pub session: String,
    /// Absent: the one that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// What an interrupt did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Interrupted {
    /// False: the turn was over already.
    pub interrupted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TurnOutcome>,
}

/// A turn that runs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunningTurn {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub turn: TurnId,
    pub phase: Phase,
    pub step: u32,
    pub started_at: Time,
}

/// What waits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    pub inputs: Vec<QueuedInput>,
    pub held: bool,
}

/// Which input to cancel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueCancelParams {
    pub session: String,
    pub input_id: InputId,
}

/// Which approvals.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalListParams {
    pub session: Option<String>,
}

/// An answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerParams {
    /// The approval.
    pub id: ApprovalId,
    /// The digest of the request that was shown.
    pub digest: String,
    pub decision: Choice,
    /// With `deny`: becomes the tool's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// The answer stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    pub id: ApprovalId,
    pub session: SessionId,
    pub decision: Resolution,
    pub seq: Seq,
}

/// From where a subscription to one session starts: at most one of `after_seq` and `tail`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachParams {
    pub session: String,
    /// Sends the events after this one first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<Seq>,
    /// Sends the events of this many last turns first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// Whether the text of open items is wanted; true if absent.
    #[serde(default = "yes")]
    pub deltas: bool,
}

fn yes() -> bool {
    true
}

/// From where a subscription to all sessions starts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WatchParams {
    /// Absent: from now on.
    pub after_pos: Option<Pos>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    /// The name models call.
    pub name: String,
    /// What it does and its limits, as models are told.
    pub description: String,
    /// Whether a call may change anything.
    pub writes: bool,
    /// Whether models are offered it.
    pub enabled: bool,
    /// Why not, and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_off: Option<String>,
    /// JSON Schema of its arguments.
    pub schema: serde_json::Value,
}
