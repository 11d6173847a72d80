//! The approval mode of a session and the outcomes of a judgement.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is asked at all when no rule speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reading inside the roots and read-only commands run; everything else asks.
    #[default]
    Ask,
    /// As `Ask`, and files inside the roots are edited without asking.
    Edits,
    /// Everything runs but what the guard or a deny rule stops.
    All,
    /// As `Ask`, but what would ask is denied.
    None,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
            Self::None => "none",
        })
    }
}

/// What becomes of a call. Ordered from harmless to worst, so that the worst part of a command wins by `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Ask,
    Deny,
    /// Stopped by the guard: no approval overrides it.
    Blocked,
}

/// The judgement of one call, recorded with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    /// One sentence for people.
    pub reason: String,
    /// Text of the rule or session allowance that spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
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
