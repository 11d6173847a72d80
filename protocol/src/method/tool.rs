//! `tool.*`: what models can do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    /// The name models call.
    pub name: String,
    /// What it does and its limits, as models are told.
    pub description: String,
    /// Whether a call may change anything.
    pub writes: bool,
    /// Whether models are offered it.
    pub enabled: bool,
    /// Why not, and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_off: Option<String>,
    /// JSON Schema of its arguments.
    pub schema: serde_json::Value,
}
