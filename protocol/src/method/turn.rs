//! Turns, and the inputs that wait for one.

use crate::content::Usage;
use crate::event::{Denied, Disposition, InputOutcome, Reason, TurnOutcome};
use crate::frame::{Phase, QueuedInput};
use crate::ids::{InputId, Seq, SessionId, TurnId};
use crate::settings::By;
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
