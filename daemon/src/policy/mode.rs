//! The approval mode of a session and the outcomes of a judgement.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use protocol::Mode;
pub use protocol::event::Decision;

/// The judgement of one call, recorded with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    /// One sentence for people.
    pub reason: String,
    /// Text of the rule or session allowance that spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The call only reads inside the project, says the built-in list: it runs in the read-only sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// The simple commands found in a command line, in order, shown under it in an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

impl Verdict {
    pub(super) fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            rule: None,
            read_only: false,
            parts: Vec::new(),
        }
    }

    pub(super) fn by_rule(mut self, rule: impl fmt::Display) -> Self {
        self.rule = Some(rule.to_string());
        self
    }

    /// The answer of `agentctl rules test`: `{"verdict", "reason", "rule"}`.
    #[must_use]
    pub fn test_answer(&self) -> serde_json::Value {
        serde_json::json!({ "verdict": self.decision, "reason": self.reason, "rule": self.rule })
    }
}
