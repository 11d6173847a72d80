//! Builds an Anthropic request: history to content blocks, cache marks, thinking.

use protocol::Content;
use serde_json::{Map, Value, json};

use crate::provider::call_ids::{CallIds, Maker, tool_name};
use crate::provider::{Effort, Message, ModelRequest, Origin, ReplyItem, ToolCall, ToolResult, ToolSpec};

/// The smallest thinking budget the API takes, in tokens.
const SMALLEST_BUDGET: u32 = 1024;

/// The body of one call.
pub(in crate::provider) fn body(request: &ModelRequest, origin: &Origin) -> Value {
    let mut messages = messages(request, origin);
    mark_history(&mut messages);
    let mut body = json!({
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": messages,
        "stream": true,
    });
    if !request.system.is_empty() {
        body["system"] = json!([{ "type": "text", "text": request.system, "cache_control": cache_mark() }]);
    }
    if !request.tools.is_empty() {
        body["tools"] = tools(&request.tools);
    }
    let thinks = add_thinking(&mut body, request);
    // With thinking on, the API takes no other temperature than its own, and hardly any top_p.
    if !thinks {
        if let Some(temperature) = request.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(top_p) = request.top_p {
            body["top_p"] = json!(top_p);
        }
    }
    body
}

fn cache_mark() -> Value {
    json!({ "type": "ephemeral" })
}

/// The tools, the last one marked: the cached prefix runs tools, system, messages.
fn tools(specs: &[ToolSpec]) -> Value {
    let mut tools: Vec<Value> = specs
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema }))
        .collect();
    if let Some(last) = tools.last_mut() {
        last["cache_control"] = cache_mark();
    }
    Value::Array(tools)
}

/// Adds what makes the model think and says whether it will.
fn add_thinking(body: &mut Value, request: &ModelRequest) -> bool {
    let Some(effort) = request.effort.filter(|effort| *effort != Effort::None) else {
        return false;
    };
    if adapts(&request.model) {
        body["thinking"] = json!({ "type": "adaptive" });
        body["output_config"] = json!({ "effort": effort_word(effort) });
        return true;
    }
    let budget = budget(effort, request.max_output_tokens);
    if budget < SMALLEST_BUDGET || budget >= request.max_output_tokens {
        return false;
    }
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
    true
}

/// Whether a model takes adaptive thinking with an effort. Those that do not are the ones up to version 4.5; a name without a
/// version is a newer one.
fn adapts(model: &str) -> bool {
    let Some(name) = model.rsplit('/').next().filter(|name| name.contains("claude")) else {
        return true;
    };
    // Two-digit parts at most: longer ones are dates.
    let mut version = name
        .split(['-', '.', '@', ':'])
        .filter(|part| part.len() <= 2)
        .filter_map(|part| part.parse::<u32>().ok());
    match (version.next(), version.next()) {
        (None, _) => true,
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= (4, 6),
    }
}

fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Xhigh => "xhigh",
        Effort::Max => "max",
    }
}

/// Thinking tokens for models that want a number: a share of the reply, which has to hold the answer too.
fn budget(effort: Effort, max_output_tokens: u32) -> u32 {
    let share = match effort {
        Effort::None => return 0,
        Effort::Minimal => return SMALLEST_BUDGET,
        Effort::Low => max_output_tokens / 8,
        Effort::Medium => max_output_tokens / 4,
        Effort::High => max_output_tokens / 2,
        Effort::Xhigh | Effort::Max => max_output_tokens / 4 * 3,
    };
    share.max(SMALLEST_BUDGET)
}

/// The history as messages whose roles alternate.
fn messages(request: &ModelRequest, origin: &Origin) -> Vec<Value> {
    let mut ids = CallIds::default();
    let mut out: Vec<(Role, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            Message::User { content } => (Role::User, content.iter().filter_map(content_block).collect()),
            Message::Assistant { origin: made, items } => {
                let maker = if made == origin {
                    Maker::SameProvider
                } else {
                    Maker::Another
                };
                ids.begin_message();
                (
                    Role::Assistant,
                    items
                        .iter()
                        .filter_map(|item| reply_block(item, maker, &mut ids))
                        .collect(),
                )
            }
            Message::Results { results } => (
                Role::User,
                results
                    .iter()
                    .map(|result| result_block(result, &ids))
                    .collect::<Vec<_>>(),
            ),
        };
        if blocks.is_empty() {
            continue;
        }
        match out.last_mut() {
            // Results and the text after them are one message, the results first.
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => out.push((role, blocks)),
        }
    }
    out.into_iter()
        .map(|(role, content)| json!({ "role": role.as_str(), "content": content }))
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A piece of a user's message or a result. Empty texts are refused by the API.
fn content_block(content: &Content) -> Option<Value> {
    match content {
        Content::Text { text } if text.trim().is_empty() => None,
        Content::Text { text } => Some(json!({ "type": "text", "text": text })),
        Content::Image { media_type, data } => Some(json!({
            "type": "image",
            "source": { "type": "base64", "media_type": media_type, "data": data },
        })),
    }
}

fn result_block(result: &ToolResult, ids: &CallIds) -> Value {
    let content: Vec<Value> = result.output.iter().filter_map(content_block).collect();
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": ids.for_result(&result.provider_call_id),
        "content": content,
    });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// A piece of a reply as it goes back, or nothing where it may not.
fn reply_block(item: &ReplyItem, maker: Maker, ids: &mut CallIds) -> Option<Value> {
    let own = maker == Maker::SameProvider;
    match item {
        ReplyItem::Text { text, .. } if text.trim().is_empty() => None,
        ReplyItem::Text { text, private } => {
            let mut block = json!({ "type": "text", "text": text });
            if let Some(citations) = private
                .as_ref()
                .filter(|_| own)
                .and_then(|private| private.get("citations"))
            {
                block["citations"] = citations.clone();
            }
            Some(block)
        }
        // Thinking without its signature is refused.
        ReplyItem::Reasoning { text, private } => {
            let signature = private.as_ref().filter(|_| own)?.get("signature")?;
            Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
        }
        // This provider wants nothing of a refused reply; to it, another's refusal is just what was said.
        ReplyItem::Refusal { text } if own || text.trim().is_empty() => None,
        ReplyItem::Refusal { text } => Some(json!({ "type": "text", "text": text })),
        ReplyItem::Opaque { private } if own && private.is_object() => Some(private.clone()),
        ReplyItem::Opaque { .. } => None,
        ReplyItem::Call(call) => Some(call_block(call, maker, ids)),
    }
}

fn call_block(call: &ToolCall, maker: Maker, ids: &mut CallIds) -> Value {
    let mut block = json!({
        "type": "tool_use",
        "id": ids.for_call(&call.provider_call_id, maker),
        "name": tool_name(&call.name),
        "input": call.arguments.as_ref().unwrap_or(&Map::new()),
    });
    let caller = call
        .private
        .as_ref()
        .filter(|_| maker == Maker::SameProvider)
        .and_then(|private| private.get("caller"));
    if let Some(caller) = caller {
        block["caller"] = caller.clone();
    }
    block
}

/// Marks the end of the history, so that the next call finds it in the cache, and the end of what the last call sent: a provider looks
/// back over some 20 blocks only, and a step of many calls has more. With tools and system these are the four marks a request may have.
fn mark_history(messages: &mut [Value]) {
    let ends = messages
        .iter_mut()
        .rev()
        .filter(|message| message["role"] == "user")
        .take(2);
    for message in ends {
        mark_last_block(message);
    }
}

/// Thinking blocks take no mark.
fn mark_last_block(message: &mut Value) {
    let blocks = message["content"].as_array_mut();
    let markable = |block: &&mut Value| {
        !matches!(
            block["type"].as_str(),
            Some("thinking" | "redacted_thinking" | "compaction")
        )
    };
    if let Some(block) = blocks.into_iter().flatten().rev().find(markable) {
        block["cache_control"] = cache_mark();
    }
}
