//! What a person or a tool hands to the model, and what a model call cost: the vocabulary shared by events, requests and
//! provider adapters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One piece of an input or of a tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text, UTF-8.
    Text { text: String },
    /// An image, its bytes in standard base64.
    Image { media_type: String, data: String },
}

impl Content {
    /// A text piece.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The text pieces of `content`, one a line.
pub fn plain_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|piece| match piece {
            Content::Text { text } => Some(text.as_str()),
            Content::Image { .. } => None,
        })
        .collect();
    texts.join("\n")
}

/// Tokens of one or more model calls, made comparable across providers: `input` includes what was read from or written to
/// a cache, `output` includes reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// Tokens received, reasoning included.
    pub output: u64,
    /// Part of `input` read from the provider's cache.
    pub cached: u64,
    /// Part of `input` written to the provider's cache.
    pub cache_write: u64,
    /// Part of `output` spent on reasoning.
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
        self.cache_write += other.cache_write;
        self.reasoning += other.reasoning;
    }
}

/// Why a model ended its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model was done.
    EndTurn,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The reply reached `max_output_tokens`.
    MaxTokens,
    /// One of the request's stop sequences came.
    StopSequence,
    /// The model refused.
    Refusal,
    /// The provider's filter cut the reply.
    ContentFilter,
    /// The provider paused a long turn; the same content continues it.
    PauseTurn,
    /// The context window is full.
    ContextWindow,
    /// Any other reason the provider names.
    Other,
}
