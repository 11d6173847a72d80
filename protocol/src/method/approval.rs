//! Pending approvals and their answers.

use crate::event::{Choice, Resolution};
use crate::ids::{ApprovalId, Seq, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which approvals.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalListParams {
    pub session: Option<String>,
    /// In place of those that wait the last that were settled, at most 50, the newest first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
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
    /// With an answer that allows: runs the call with these arguments instead. They are judged from scratch; if they go
    /// beyond what was asked, the changed call is asked about anew and the decision answered is `edited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
}

/// The answer stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    pub id: ApprovalId,
    pub session: SessionId,
    pub decision: Resolution,
    pub seq: Seq,
}
