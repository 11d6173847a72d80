//! What a session is set to, and who set it.

use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is asked at all before a tool runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Whatever no rule allows is asked.
    #[default]
    Ask,
    /// File edits inside the roots are allowed, commands are asked.
    Edits,
    /// Nothing is asked. What the guard blocks stays blocked.
    All,
    /// Nothing is asked: what would be asked is denied.
    None,
}

impl Mode {
    /// Whether all that `narrower` lets run runs in this mode too.
    #[must_use]
    pub fn allows_as_much_as(self, narrower: Self) -> bool {
        let width = |mode| match mode {
            Self::Ask | Self::None => 0,
            Self::Edits => 1,
            Self::All => 2,
        };
        width(self) >= width(narrower)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// What decides an approval when nobody who could answer is attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnattendedPolicy {
    /// It waits for as long as it takes.
    #[default]
    Wait,
    /// It is denied, the model is told, and the turn goes on.
    Deny,
    /// The turn ends as `unanswered`.
    Fail,
}

/// The unattended policy and how long it waits first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unattended {
    /// What happens.
    pub policy: UnattendedPolicy,
    /// Time without anybody who can answer, in milliseconds; 5 s if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

impl Unattended {
    /// Time without anybody who can answer before the policy decides, if it does not name one.
    pub const DEFAULT_AFTER_MS: u64 = 5_000;

    /// A policy with the default time.
    pub fn new(policy: UnattendedPolicy) -> Self {
        Self { policy, after_ms: None }
    }
}

/// Bounds of a session's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Model calls in one turn before a person is asked whether to continue.
    pub max_steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 50 }
    }
}

/// A session's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Name of the model's profile; absent: chosen by the daemon at each turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is asked.
    pub mode: Mode,
    /// When the mode ends and `mode_after` holds again; absent: it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_until: Option<Time>,
    /// The mode that a timed one gives way to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_after: Option<Mode>,
    /// What happens when nobody can answer.
    pub unattended: Unattended,
    /// Bounds of its turns.
    pub limits: Limits,
}

impl Settings {
    /// The mode in force at a moment and when it ends: a timed one that is over has given way, recorded or not.
    #[must_use]
    pub fn mode_at(&self, at: Time) -> (Mode, Option<Time>) {
        match self.mode_until {
            Some(until) if until <= at => (self.mode_after.unwrap_or_default(), None),
            until => (self.mode, until),
        }
    }
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum By {
    /// A client, as it named itself; `pid` is what the kernel says.
    Client {
        client: String,
        kind: String,
        pid: Option<i32>,
    },
    /// A rule, a mode or a policy, by its text.
    Rule { rule: String },
    /// The daemon itself, with the reason.
    Daemon { daemon: String },
}

impl By {
    /// The daemon, for `reason`.
    pub fn daemon(reason: &str) -> Self {
        Self::Daemon {
            daemon: reason.to_owned(),
        }
    }

    /// The rule, mode or policy `rule`.
    pub fn rule(rule: &str) -> Self {
        Self::Rule { rule: rule.to_owned() }
    }
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client {
                client,
                kind,
                pid: Some(pid),
            } => write!(f, "{client} ({kind}, pid {pid})"),
            Self::Client {
                client,
                kind,
                pid: None,
            } => write!(f, "{client} ({kind})"),
            Self::Rule { rule } => write!(f, "rule {rule}"),
            Self::Daemon { daemon } => write!(f, "agentd ({daemon})"),
        }
    }
}
