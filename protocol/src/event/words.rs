//! The words that events are made of: how things ended, what was asked, what was decided.

use crate::ids::{CallId, Seq};
use crate::settings::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a client wants an input delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Starts a turn, or steers the one that runs.
    #[default]
    Auto,
    /// Joins the running turn when its next model call is built.
    Steer,
    /// Waits for the next turn.
    Queue,
    /// Interrupts the running turn and starts the next.
    Interrupt,
}

/// What became of an input when it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It starts a turn at once.
    Started,
    /// It joins the running turn.
    Steered,
    /// It waits for its own turn.
    Queued,
}

/// How an input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputOutcome {
    Done,
    Failed,
    Interrupted,
    TimedOut,
    Unanswered,
    Cancelled,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model ended its turn.
    Completed,
    /// A provider or a limit ended it; the reason says which.
    Failed,
    /// Somebody ended it.
    Interrupted,
    /// Its time was over.
    TimedOut,
    /// Nobody could answer an approval.
    Unanswered,
}

/// What becomes of a turn's inputs when it ends so.
impl From<TurnOutcome> for InputOutcome {
    fn from(outcome: TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Completed => Self::Done,
            TurnOutcome::Failed => Self::Failed,
            TurnOutcome::Interrupted => Self::Interrupted,
            TurnOutcome::TimedOut => Self::TimedOut,
            TurnOutcome::Unanswered => Self::Unanswered,
        }
    }
}

/// Why something failed, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable name of the cause.
    pub kind: String,
    /// What happened, to what.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A call that was denied because nobody could answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denied {
    pub call: CallId,
    pub tool: String,
    pub reason: String,
}

/// Which model answered a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelRef {
    /// Name of the profile.
    pub profile: String,
    /// The model as the provider calls it.
    pub model: String,
    /// Wire protocol and host: private parts are replayed to the same origin only.
    pub origin: String,
}

/// What a model call was built from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Manifest {
    /// Ranges of the log that went in, first and last `seq`.
    pub history: Vec<(Seq, Seq)>,
    /// Hash of the system prompt.
    pub system: String,
    /// What the system prompt is made of, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<PromptSource>,
    /// Names of the tools offered.
    pub tools: Vec<String>,
    /// Bytes of the request's texts.
    pub bytes: u64,
    /// Tokens of the request as the daemon estimated them before the call.
    pub tokens: u64,
    /// Private parts left out because they belong to another provider.
    #[serde(skip_serializing_if = "is_zero")]
    pub private_dropped: u32,
}

/// A piece of the system prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PromptSource {
    /// `built-in`, or the name of a file in the project's root.
    pub source: String,
    /// Hex SHA-256 of the piece as the model sees it.
    pub hash: String,
    /// Its tokens, estimated.
    pub tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What a piece of a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemType {
    Text,
    Reasoning,
    Refusal,
    /// Kept for the provider alone.
    Opaque,
}

/// Whether a piece is all the model meant to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    Whole,
    Interrupted,
}

/// What the policy said of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: String,
    /// Text of the rule that spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The call only reads inside the project, says the built-in list: it runs in the read-only sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// The narrowest mode that lets it run, where nothing but a mode does: it does not begin in a narrower one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// The four verdicts, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Ask,
    Deny,
    /// Refused in every mode.
    Blocked,
}

/// What a call will do, for people. Untrusted text: show it through `display` only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Action {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The simple commands found in `command`, each with what it is redirected to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// The directory `command` runs in: absolute, its links followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Milliseconds after which `command` is let go on in the background, 0: at once; absent: its end is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_after_ms: Option<u64>,
    /// Milliseconds after which `command` is ended, if the model chose them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The whole address, its host in the form that goes over the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What a turn has reached, so that a person is asked whether it may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoOnLimit {
    /// The steps it may take.
    Steps,
    /// What model calls may cost.
    Cost,
}

/// What may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// This call alone.
    Once,
    /// What `rule` covers, for this session.
    Session,
    /// The same, and the rule `always` is written into the user's own file.
    Always,
    /// No.
    Deny,
}

/// How an approval was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    Once,
    Session,
    Always,
    /// The arguments were changed so much that the changed call is asked about anew.
    Edited,
    Deny,
    /// Its turn was stopped.
    Cancelled,
    /// Nobody could answer.
    Expired,
}

impl Resolution {
    /// Whether the call may run.
    pub fn allows(self) -> bool {
        matches!(self, Self::Once | Self::Session | Self::Always)
    }
}

impl From<Choice> for Resolution {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Once => Self::Once,
            Choice::Session => Self::Session,
            Choice::Always => Self::Always,
            Choice::Deny => Self::Deny,
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    Ok,
    Error,
    Denied,
    /// It never began.
    NotRun,
    TimedOut,
    /// It ended because the turn was stopped.
    Stopped,
    /// The daemon died while it ran: whether it took effect is unknown.
    Lost,
    /// It did not end although it was killed.
    Abandoned,
}

/// One thing the model means to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TodoItem {
    /// At most 200 characters. Untrusted text: show it through `display` only.
    pub text: String,
    pub state: TodoState,
}

/// How far an item of the list is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    #[default]
    Pending,
    InProgress,
    Done,
}

/// A big output, stored once by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobRef {
    /// SHA-256, hex.
    pub hash: String,
    /// Size as stored.
    pub bytes: u64,
    /// Bytes that were cut before it was stored.
    pub cut: u64,
}

/// What a tool or its command put out, apart from the words around it, such as the line that says how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Produced {
    /// Lines of all of it, also of what was cut.
    pub lines: u64,
    /// Bytes of all of it, also of what was cut.
    pub bytes: u64,
    /// Where it, or what is left of it, begins in `output`, in bytes.
    pub start: u64,
    /// Where it ends in `output`, in bytes.
    pub end: u64,
}

impl Produced {
    /// All of `text`, which stands at the beginning of the output.
    #[must_use]
    pub fn all(text: &str) -> Self {
        Self {
            lines: text.lines().count() as u64,
            bytes: text.len() as u64,
            start: 0,
            end: text.len() as u64,
        }
    }

    /// The part of `output` that was put out; none where the places do not fit it.
    #[must_use]
    pub fn of<'a>(&self, output: &'a str) -> Option<&'a str> {
        let place = |bytes: u64| usize::try_from(bytes).ok();
        output.get(place(self.start)?..place(self.end)?)
    }
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    Info,
    Warning,
}
