//! Commands in the background.

use crate::ids::{CallId, JobId, SessionId};
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which jobs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobListParams {
    /// Absent: those of all sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A job that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobInfo {
    pub job: JobId,
    pub session: SessionId,
    /// The session's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The call that started it.
    pub call: CallId,
    /// What runs. Untrusted text: show it through `display` only.
    pub command: String,
    /// When it went to the background.
    pub started_at: Time,
}

/// Which job to end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobKillParams {
    pub session: String,
    pub job: JobId,
}
