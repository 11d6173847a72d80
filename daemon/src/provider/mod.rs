//! Connections to models: one neutral request, one neutral reply, an adapter per wire protocol.
//!
//! An adapter turns a `ModelRequest` into its provider's request and the provider's stream into a `ModelReply`; only it
//! knows its wire format, and no adapter knows another. What a provider wants to see again on the next turn (signatures,
//! encrypted reasoning, ids) travels as `private` values that only the adapter with the same `Origin` reads.
//! Retrying is the turn loop's business: a failure comes back as a `ModelError` whose class says whether trying again can
//! help.

mod address;
mod anthropic_messages;
mod call_ids;
mod classify;
mod clients;
mod decoded;
mod demo;
pub mod error;
#[cfg(test)]
mod exchange;
mod http;
mod json_text;
mod lenient;
pub mod listing;
mod normal;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod requests;
mod retry_after;
pub mod sse;
mod token_http;

use std::sync::Arc;

use async_trait::async_trait;
use protocol::{Content, Stop, Usage};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::profile::{Profile, Wire};

pub use crate::config::profile::Effort;
pub use classify::classify_body;
pub use clients::Http;
pub use decoded::{
    Call, CallEnd, CallForm, Decoded, Decoder, InStreamError, Item, Part, Progress, ReplyTooLarge, ReportedUsage,
};
pub use error::{Class, ModelError};
pub use normal::normalised;

/// One model call, in nobody's wire format.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The provider's name of the model.
    pub model: String,
    /// The system prompt; empty when there is none.
    pub system: String,
    /// The history, oldest first. Each `Results` directly follows the `Assistant` message whose calls it answers.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// Most tokens of the reply.
    pub max_output_tokens: u32,
    /// Not sent when `None`.
    pub temperature: Option<f64>,
    /// Not sent when `None`.
    pub top_p: Option<f64>,
    /// Nothing about reasoning is sent when `None`.
    pub effort: Option<Effort>,
    /// What the calls of one conversation have in common, for providers that look for a cached beginning by it. Says nothing about who
    /// asks.
    pub cache_key: Option<String>,
    /// Whether a person watches; only the demo model reads it.
    pub interactive: bool,
}

/// A tool as the model sees it.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    pub schema: Value,
}

/// One message of the history.
#[derive(Debug, Clone)]
pub enum Message {
    /// What a person or the daemon said.
    User { content: Vec<Content> },
    /// What a model said. Its private parts are replayed only to the provider of the same origin.
    Assistant { origin: Origin, items: Vec<ReplyItem> },
    /// The results of the calls of the assistant message directly before.
    Results { results: Vec<ToolResult> },
}

/// Which provider made a reply: wire and address, such as `anthropic-messages https://api.anthropic.com`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin(pub String);

/// What one call gave.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The id the provider gave the call.
    pub provider_call_id: String,
    pub output: Vec<Content>,
    pub is_error: bool,
}

/// A finished reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// The items in reply order; the item at `n` is the one the sink knows as `n`.
    pub items: Vec<ReplyItem>,
    pub stop: Stop,
    /// `None` when the provider reported none.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    pub response_id: Option<String>,
}

/// One item of a reply. `private` is what the provider wants back and nobody else reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyItem {
    Text {
        text: String,
        private: Option<Value>,
    },
    Reasoning {
        text: String,
        private: Option<Value>,
    },
    Refusal {
        text: String,
    },
    /// Something only the provider understands; `null` when there is nothing to send back.
    Opaque {
        private: Value,
    },
    Call(ToolCall),
}

/// A tool call the model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id the result must name.
    pub provider_call_id: String,
    pub name: String,
    /// The parsed arguments, or why the call must not run.
    pub arguments: Result<Map<String, Value>, BadArguments>,
    pub private: Option<Value>,
}

/// Arguments that are not one complete JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadArguments {
    /// What the model wrote.
    pub raw: String,
    /// What is wrong with it, for the model to read.
    pub message: String,
}

/// What kind of item opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    Text,
    Reasoning,
    Refusal,
    Opaque,
    Call { name: String, provider_call_id: String },
}

/// Receives what the model is saying while it says it. `item` counts the reply's items from 0 in order of appearance;
/// every item of the reply is opened exactly once, in that order.
pub trait Sink: Send {
    /// An item appears.
    fn open(&mut self, item: usize, kind: ItemKind);
    /// More of its text, or the next fragment of a call's argument JSON. Never splits a character.
    fn push(&mut self, item: usize, text: &str);
}

/// A connection to one model provider.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Whose replies this provider can take back with their private parts.
    fn origin(&self) -> Origin;

    /// Makes one model call. Dropping the future closes the connection at once.
    ///
    /// # Errors
    /// Any failure of the connection, the provider or the stream; a reply without its terminal marker is one.
    async fn call(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<ModelReply, ModelError>;
}

/// The provider of `profile`. Nothing is sent and no HTTP client is built before the first call.
///
/// # Errors
/// `Class::Refused` when the profile's address may not be used: not a URL, or plain `http` to another machine.
pub fn connect(profile: &Profile, key: Option<SecretString>, http: &Http) -> Result<Arc<dyn Provider>, ModelError> {
    let endpoint = |path: &str| http::Endpoint::new(profile, key, http, path);
    match profile.wire {
        Wire::AnthropicMessages => Ok(Arc::new(anthropic_messages::AnthropicMessages::new(endpoint(
            "/v1/messages",
        )?))),
        Wire::OpenaiChat => Ok(Arc::new(openai_chat::OpenaiChat::new(endpoint("/chat/completions")?))),
        Wire::OpenaiResponses => Ok(Arc::new(openai_responses::OpenaiResponses::new(endpoint(
            "/responses",
        )?))),
        Wire::Demo => Ok(Arc::new(demo::Demo)),
    }
}

/// A decoder of `wire`'s stream; `None` for the demo model, which has none.
pub fn decoder(wire: Wire) -> Option<Box<dyn Decoder>> {
    match wire {
        Wire::AnthropicMessages => Some(Box::new(anthropic_messages::stream::Stream::default())),
        Wire::OpenaiChat => Some(Box::new(openai_chat::stream::Stream::default())),
        Wire::OpenaiResponses => Some(Box::new(openai_responses::stream::Stream::default())),
        Wire::Demo => None,
    }
}
