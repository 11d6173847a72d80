//! Rules as clients see them: what the user's `rules.toml` and a project's file hold, and what a command would meet.

use crate::event::Decision;
use crate::settings::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    Allow,
    Ask,
    Deny,
}

/// A rule as a file holds it. Every part that is given must match; a rule that gives none is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    pub decision: RuleDecision,
    /// Name of a tool; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// First words of a simple command; `*` stands for any one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// A whole command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Globs of paths; relative ones count from the session's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Host names; `*.example.com` covers every name below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Root of the project it is for; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Examples it must speak on, checked whenever it is loaded.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Examples it must not speak on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_match: Vec<String>,
}

/// A rule in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Place in its file, from 1; `rule.remove` takes it.
    pub number: u32,
    /// Whose file it stands in.
    pub source: RuleSource,
    /// The file.
    pub file: String,
    /// One line for people.
    pub text: String,
    pub rule: RuleSpec,
}

/// Whose file a rule stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleSource {
    /// The user's own `rules.toml`.
    User,
    /// The project's `.agent/config.toml`.
    Project,
}

/// Which rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuleListParams {
    /// A directory: also the rules of the project it belongs to.
    pub cwd: Option<String>,
}

/// A rule to be added to the user's own file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleAddParams {
    /// A directory: the rule is for the project it belongs to, unless it names a root itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    pub rule: RuleSpec,
}

/// Which of the user's own rules to remove.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleRemoveParams {
    /// Place in the file, from 1.
    pub number: u32,
    /// Its `text` as it was listed: a file that has changed since is left alone.
    pub text: String,
}

/// A command to be judged.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleTestParams {
    /// The command line. It is not run.
    pub command: String,
    /// Directory it would run in; absolute.
    pub cwd: String,
    /// The mode it is judged in; absent: the one new sessions have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// What would become of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleVerdict {
    pub verdict: Decision,
    /// One sentence for people.
    pub reason: String,
    /// Text of the rule that spoke; null if none did.
    pub rule: Option<String>,
}
