//! The configuration as clients see it: each value in force and where it comes from. No secret is among them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the person stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigGetParams {
    /// A directory: with what the project's own file changes for sessions there.
    pub cwd: Option<String>,
}

/// What the daemon runs with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigView {
    /// The user's file.
    pub file: String,
    /// The user's rules.
    pub rules_file: String,
    /// The project's own file, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_file: Option<String>,
    /// In the order of the template.
    pub settings: Vec<Setting>,
    /// What is wrong with the user's file as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What is wrong with the user's rules as they are now, and what holds meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_fault: Option<String>,
    /// False, since a change counts at once; kept for older clients.
    pub changed: bool,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Path in the file, such as `session.mode`.
    pub key: String,
    /// As TOML; `(hidden)` for what may be secret.
    pub value: String,
    /// `default`, or file and line.
    pub from: String,
}

/// A change of the user's file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigSetParams {
    /// Path in the file, such as `session.mode`.
    pub key: String,
    /// As TOML; what is no TOML is taken as text.
    pub value: String,
}
