//! The models a session can be answered by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which models.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelListParams {
    /// Asks each server which models it has; the answer takes up to 5 s then.
    pub available: bool,
}

/// The models a session can be answered by.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelListAnswer {
    pub models: Vec<ModelInfo>,
    /// What answers a session that names no model, where nobody configured it; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// A model server of this machine that answers instead of the demo model if a person says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_server: Option<LocalServer>,
    /// What a person said of it, if anybody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_decision: Option<LocalDecision>,
}

/// A model that `--model NAME` names.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelInfo {
    pub name: String,
    pub wire: String,
    /// The provider's name of the model.
    pub model: String,
    /// Where its provider is, without user and path; empty for the demo model.
    pub address: String,
    /// Whether it answers a session that names no model.
    pub default: bool,
    /// Whether it stands in the config file; the others are built in or found on this machine.
    pub configured: bool,
    /// The variable its key comes from, where no client has sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Whether nobody has logged in for it, as its profile wants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_login: bool,
    /// Size of the context window.
    pub context_tokens: u64,
    /// False: `context_tokens` is a guess.
    pub context_known: bool,
    /// Tokens of context that sessions should stay below.
    pub context_budget_tokens: u64,
    pub max_output_tokens: u32,
    /// US dollars per million tokens; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceList>,
    /// What its server says it has, if it was asked and answered; at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<Vec<String>>,
    /// Why its server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A model server that was found on this machine and that nobody configured. Nothing is sent to it before a person said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalServer {
    /// What `--model` calls it: `ollama`, `llama.cpp`, `lm-studio`, `vllm`.
    pub name: String,
    /// Where it listens: `127.0.0.1:11434`.
    pub address: String,
    /// The model it would answer with.
    pub model: String,
    /// Whose process it is, for people: `you`, `root`, `system account 997`.
    pub owner: String,
    pub uid: u32,
}

/// Whether a server that was found may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LocalDecision {
    /// It answers wherever nothing is configured and no key is there.
    Use,
    /// It is not asked about again.
    Never,
}

/// A person's word on a server that was found.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfirmParams {
    /// The server's address and owner as they were shown.
    pub address: String,
    pub uid: u32,
    pub decision: LocalDecision,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriceList {
    /// Sent and not cached.
    pub input: f64,
    pub output: f64,
    /// Read from the provider's cache.
    pub cached: f64,
    /// Written to the provider's cache.
    pub cache_write: f64,
}
