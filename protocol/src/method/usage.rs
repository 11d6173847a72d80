//! What model calls used.

use crate::content::Usage;
use crate::event::TurnOutcome;
use crate::ids::{SessionId, TurnId};
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose usage.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UsageParams {
    /// Absent: all sessions together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What model calls used.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Model calls that ended.
    pub calls: u64,
    /// Those of them that failed.
    pub failed: u64,
    pub usage: Usage,
    /// US dollars of the calls whose price is known; absent: no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Calls that used tokens and whose price is not known: `cost` lacks them.
    pub unpriced: u64,
}

/// Usage, from the log. Lists have the newest first, at most 200 of each.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UsageAnswer {
    /// The session that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    pub total: Spent,
    /// By the day a call ended, UTC.
    pub days: Vec<DaySpent>,
    /// By the model that answered; failed calls are left out.
    pub models: Vec<ModelSpent>,
    /// By session, where none was asked for.
    pub sessions: Vec<SessionSpent>,
    /// By turn, of the session that was asked for: its last 50 that have ended.
    pub turns: Vec<TurnSpent>,
}

/// Usage of a day.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DaySpent {
    /// `2026-01-31`.
    pub day: String,
    #[serde(flatten)]
    pub spent: Spent,
}

/// Usage of a model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelSpent {
    pub profile: String,
    /// As the provider names it.
    pub model: String,
    #[serde(flatten)]
    pub spent: Spent,
}

/// Usage of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionSpent {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(flatten)]
    pub spent: Spent,
}

/// Usage of a turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnSpent {
    pub turn: TurnId,
    /// When it ended.
    pub at: Time,
    pub outcome: TurnOutcome,
    pub steps: u32,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}
