//! Builds a Chat Completions request: history to messages, and the few fields whose form depends on who answers.

use protocol::{Content, plain_text};
use serde_json::{Map, Value, json};

use super::reasoning::{self, Replay};
use crate::provider::call_ids::{CallIds, Maker, tool_name};
use crate::provider::{Effort, Message, ModelRequest, Origin, ReplyItem, ToolCall, ToolResult, ToolSpec};

/// Whose server it is, as far as requests differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum Dialect {
    /// OpenAI itself: `max_completion_tokens`, and a key to find the cache by.
    OpenAi,
    /// OpenAI's models on Azure: `max_completion_tokens`; older versions of its API refuse fields they do not know.
    Azure,
    /// OpenRouter: `reasoning` as an object, cache marks passed on to Anthropic.
    OpenRouter,
    /// Mistral: refuses `stream_options` and sends usage anyway.
    Mistral,
    /// Everybody else.
    Other,
}

impl Dialect {
    /// The dialect spoken at `host`.
    pub(in crate::provider) fn of(host: &str) -> Self {
        let is = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|subdomain| subdomain.is_empty() || subdomain.ends_with('.'))
        };
        if is("openai.com") {
            Self::OpenAi
        } else if is("openai.azure.com") {
            Self::Azure
        } else if is("openrouter.ai") {
            Self::OpenRouter
        } else if is("mistral.ai") {
            Self::Mistral
        } else {
            Self::Other
        }
    }
}

/// The body of one call.
pub(in crate::provider) fn body(request: &ModelRequest, origin: &Origin, dialect: Dialect) -> Value {
    let mut messages = messages(request, origin);
    if dialect == Dialect::OpenRouter && request.model.starts_with("anthropic/") {
        mark_for_cache(&mut messages);
    }
    let limit = match dialect {
        Dialect::OpenAi | Dialect::Azure => "max_completion_tokens",
        Dialect::OpenRouter | Dialect::Mistral | Dialect::Other => "max_tokens",
    };
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        limit: request.max_output_tokens,
    });
    if dialect != Dialect::Mistral {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(top_p) = request.top_p {
        body["top_p"] = json!(top_p);
    }
    match request.effort {
        Some(effort) if dialect == Dialect::OpenRouter => body["reasoning"] = json!({ "effort": effort_word(effort) }),
        Some(effort) => body["reasoning_effort"] = json!(effort_word(effort)),
        None => {}
    }
    if let Some(key) = request.cache_key.as_ref().filter(|_| dialect == Dialect::OpenAi) {
        body["prompt_cache_key"] = json!(key);
    }
    body
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": { "name": spec.name, "description": spec.description, "parameters": spec.schema },
    })
}

fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Xhigh | Effort::Max => "xhigh",
    }
}

fn messages(request: &ModelRequest, origin: &Origin) -> Vec<Value> {
    let mut ids = CallIds::default();
    let mut out = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        out.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message {
            Message::User { content } => out.push(user(content)),
            Message::Assistant { origin: made, items } => {
                let maker = if made == origin {
                    Maker::SameProvider
                } else {
                    Maker::Another
                };
                ids.begin_message();
                out.extend(assistant(items, maker, &mut ids));
            }
            Message::Results { results } => out.extend(results_of(results, &ids)),
        }
    }
    out
}

/// A user's message: a plain string where it is only text, which every server takes.
fn user(content: &[Content]) -> Value {
    if content.iter().all(|piece| matches!(piece, Content::Text { .. })) {
        return json!({ "role": "user", "content": plain_text(content) });
    }
    json!({ "role": "user", "content": content.iter().map(part).collect::<Vec<_>>() })
}

fn part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({ "type": "text", "text": text }),
        Content::Image { media_type, data } => {
            json!({ "type": "image_url", "image_url": { "url": format!("data:{media_type};base64,{data}") } })
        }
    }
}

/// One message for the whole reply, or none where nothing of it goes back.
fn assistant(items: &[ReplyItem], maker: Maker, ids: &mut CallIds) -> Option<Value> {
    let mut text = String::new();
    let mut calls = Vec::new();
    for item in items {
        match item {
            ReplyItem::Text { text: said, .. } | ReplyItem::Refusal { text: said } => text.push_str(said),
            ReplyItem::Call(made) => calls.push(call(made, maker, ids)),
            ReplyItem::Reasoning { .. } | ReplyItem::Opaque { .. } => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    // Content is null, not empty, beside calls alone: that is how it came.
    let content = if text.is_empty() {
        Value::Null
    } else {
        Value::String(text)
    };
    let mut message = json!({ "role": "assistant", "content": content });
    if maker == Maker::SameProvider {
        add_reasoning(&mut message, items, !calls.is_empty());
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

/// Gives the reasoning back in the field it came in. Plain text goes back only beside calls, where servers need it; details
/// and thinking parts always.
fn add_reasoning(message: &mut Value, items: &[ReplyItem], has_calls: bool) {
    for item in items {
        let ReplyItem::Reasoning {
            text,
            private: Some(private),
        } = item
        else {
            continue;
        };
        match reasoning::replay(text, private) {
            Some(Replay::Field { name, value }) if has_calls || value.is_array() => message[name] = value,
            Some(Replay::Part(thought)) => {
                let mut parts = vec![json!({ "type": "thinking", "thinking": [{ "type": "text", "text": thought }] })];
                if let Some(said) = message["content"].as_str() {
                    parts.push(json!({ "type": "text", "text": said }));
                }
                message["content"] = Value::Array(parts);
            }
            _ => {}
        }
    }
}

/// Arguments that never parsed go back as an empty object: servers that parse them would refuse the whole history, and the
/// call's result says what was wrong.
fn call(call: &ToolCall, maker: Maker, ids: &mut CallIds) -> Value {
    let arguments = call.arguments.as_ref().unwrap_or(&Map::new()).clone();
    let mut made = json!({
        "id": ids.for_call(&call.provider_call_id, maker),
        "type": "function",
        "function": { "name": tool_name(&call.name), "arguments": Value::Object(arguments).to_string() },
    });
    let private = call.private.as_ref().filter(|_| maker == Maker::SameProvider);
    if let Some(extra) = private.and_then(|private| private.get("extra_content")) {
        made["extra_content"] = extra.clone();
    }
    made
}

/// One message per result, then one user message with all their images: tool messages take text only.
fn results_of(results: &[ToolResult], ids: &CallIds) -> Vec<Value> {
    let mut out = Vec::with_capacity(results.len() + 1);
    let mut images = Vec::new();
    for result in results {
        let id = ids.for_result(&result.provider_call_id);
        out.push(json!({ "role": "tool", "tool_call_id": id, "content": plain_text(&result.output) }));
        let pictures: Vec<&Content> = result
            .output
            .iter()
            .filter(|c| matches!(c, Content::Image { .. }))
            .collect();
        if !pictures.is_empty() {
            images.push(json!({ "type": "text", "text": format!("Images returned by call {id}:") }));
            images.extend(pictures.into_iter().map(part));
        }
    }
    if !images.is_empty() {
        out.push(json!({ "role": "user", "content": images }));
    }
    out
}

/// Marks the system prompt and the last message that can hold a mark.
fn mark_for_cache(messages: &mut [Value]) {
    let system = messages.iter().position(|message| message["role"] == "system");
    let last = messages
        .iter()
        .rposition(|message| message["role"] != "assistant" && !message["content"].is_null());
    for place in system.into_iter().chain(last.filter(|last| Some(*last) != system)) {
        let Some(content) = messages.get_mut(place).map(|message| &mut message["content"]) else {
            continue;
        };
        if let Some(text) = content.as_str().filter(|text| !text.is_empty()) {
            *content = json!([{ "type": "text", "text": text }]);
        }
        if let Some(part) = content.as_array_mut().and_then(|parts| parts.last_mut()) {
            part["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
}
