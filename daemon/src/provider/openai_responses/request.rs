//! Builds a stateless Responses request: history to input items, encrypted reasoning carried along.

use protocol::{Content, plain_text};
use serde_json::{Map, Value, json};

use crate::provider::call_ids::{CallIds, Maker, tool_name};
use crate::provider::{Effort, Message, ModelRequest, Origin, ReplyItem, ToolCall, ToolResult, ToolSpec};

/// The smallest `max_output_tokens` the API takes.
const SMALLEST_OUTPUT: u32 = 16;

/// Whose server it is, as far as requests differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum Dialect {
    /// ChatGPT's own backend: wants `instructions`, refuses limits and sampling.
    ChatGpt,
    /// OpenAI itself.
    OpenAi,
    Other,
}

impl Dialect {
    /// The dialect spoken at `host`.
    pub(in crate::provider) fn of(host: &str) -> Self {
        if host == "chatgpt.com" || host.ends_with(".chatgpt.com") {
            Self::ChatGpt
        } else if host == "openai.com" || host.ends_with(".openai.com") {
            Self::OpenAi
        } else {
            Self::Other
        }
    }
}

/// The body of one call.
pub(in crate::provider) fn body(request: &ModelRequest, origin: &Origin, dialect: Dialect) -> Value {
    let mut body = json!({
        "model": request.model,
        "input": input(request, origin),
        "stream": true,
        "store": false,
    });
    if !request.system.is_empty() || dialect == Dialect::ChatGpt {
        body["instructions"] = json!(request.system);
    }
    if reasons(&request.model) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    match request.effort {
        Some(Effort::None) => body["reasoning"] = json!({ "effort": "none" }),
        Some(effort) => body["reasoning"] = json!({ "effort": effort_word(effort), "summary": "auto" }),
        None => {}
    }
    // Servers of others may refuse a field they do not know.
    if let Some(key) = request.cache_key.as_ref().filter(|_| dialect != Dialect::Other) {
        body["prompt_cache_key"] = json!(key);
    }
    if dialect != Dialect::ChatGpt {
        body["max_output_tokens"] = json!(request.max_output_tokens.max(SMALLEST_OUTPUT));
        if let Some(temperature) = request.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(top_p) = request.top_p {
            body["top_p"] = json!(top_p);
        }
    }
    body
}

/// Whether encrypted reasoning may be asked for: OpenAI's models without reasoning refuse the whole request.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let without = ["gpt-4", "gpt-3", "chatgpt-"];
    !(without.iter().any(|family| name.starts_with(family)) || name.contains("-chat"))
}

/// Tools are flat here. `strict` is off: schemas of tools have optional fields, which strict mode forbids.
fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.schema,
        "strict": false,
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

fn input(request: &ModelRequest, origin: &Origin) -> Vec<Value> {
    let mut ids = CallIds::default();
    let mut out = Vec::new();
    // Calls of the latest reply that take free text: their results have a form of their own.
    let mut custom = Vec::new();
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
                custom = items.iter().filter_map(|item| custom_call(item, maker)).collect();
                out.extend(reply(items, maker, &mut ids));
            }
            Message::Results { results } => {
                out.extend(results.iter().map(|result| output(result, &ids, &custom)));
            }
        }
    }
    out
}

fn user(content: &[Content]) -> Value {
    json!({ "role": "user", "content": content.iter().map(part).collect::<Vec<_>>() })
}

fn part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({ "type": "input_text", "text": text }),
        Content::Image { media_type, data } => {
            json!({ "type": "input_image", "image_url": format!("data:{media_type};base64,{data}") })
        }
    }
}

/// The items of one reply. Reasoning goes back only with the item it led to; the API refuses it alone.
fn reply(items: &[ReplyItem], maker: Maker, ids: &mut CallIds) -> Vec<Value> {
    let mut out = Vec::new();
    let mut thoughts = Vec::new();
    for item in items {
        if let ReplyItem::Reasoning {
            private: Some(private), ..
        } = item
        {
            thoughts.extend(
                Some(private)
                    .filter(|item| maker == Maker::SameProvider && replayable(item))
                    .cloned(),
            );
        } else if let Some(value) = reply_item(item, maker, ids) {
            out.append(&mut thoughts);
            out.push(value);
        }
    }
    out
}

/// Without the server's storage a reasoning item is of use only if it holds its content, encrypted or, from open models, plain.
fn replayable(item: &Value) -> bool {
    let encrypted = item
        .get("encrypted_content")
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty());
    let plain = item
        .get("content")
        .and_then(Value::as_array)
        .is_some_and(|parts| !parts.is_empty());
    encrypted || plain
}

fn reply_item(item: &ReplyItem, maker: Maker, ids: &mut CallIds) -> Option<Value> {
    let own = maker == Maker::SameProvider;
    match item {
        ReplyItem::Text { text, .. } if text.is_empty() => None,
        ReplyItem::Text { text, private } => {
            let private = private.as_ref().filter(|_| own);
            Some(message(
                json!({ "type": "output_text", "text": text, "annotations": [] }),
                private,
            ))
        }
        ReplyItem::Refusal { text } if text.is_empty() => None,
        ReplyItem::Refusal { text } => Some(message(json!({ "type": "refusal", "refusal": text }), None)),
        ReplyItem::Opaque { private } if own && private.is_object() => Some(private.clone()),
        ReplyItem::Opaque { .. } | ReplyItem::Reasoning { .. } => None,
        ReplyItem::Call(made) => Some(call(made, maker, ids)),
    }
}

fn message(content: Value, private: Option<&Value>) -> Value {
    let mut item = json!({ "type": "message", "role": "assistant", "content": [content] });
    copy_fields(&mut item, private, &["id", "phase"]);
    if item.get("id").is_some() {
        item["status"] = json!("completed");
    }
    item
}

fn call(call: &ToolCall, maker: Maker, ids: &mut CallIds) -> Value {
    let private = call.private.as_ref().filter(|_| maker == Maker::SameProvider);
    let empty = Map::new();
    let arguments = call.arguments.as_ref().unwrap_or(&empty);
    let mut item = json!({
        "type": "function_call",
        "call_id": ids.for_call(&call.provider_call_id, maker),
        "name": tool_name(&call.name),
    });
    if is_custom(private) {
        item["type"] = json!("custom_tool_call");
        item["input"] = arguments.get("input").cloned().unwrap_or_else(|| json!(""));
    } else {
        item["arguments"] = Value::String(Value::Object(arguments.clone()).to_string());
    }
    copy_fields(&mut item, private, &["id", "namespace"]);
    item
}

fn is_custom(private: Option<&Value>) -> bool {
    private.and_then(|private| private.get("custom")).is_some()
}

fn custom_call(item: &ReplyItem, maker: Maker) -> Option<String> {
    match item {
        ReplyItem::Call(call) if maker == Maker::SameProvider && is_custom(call.private.as_ref()) => {
            Some(call.provider_call_id.clone())
        }
        _ => None,
    }
}

fn copy_fields(item: &mut Value, private: Option<&Value>, fields: &[&str]) {
    for field in fields {
        if let Some(value) = private.and_then(|private| private.get(*field)) {
            item[*field] = value.clone();
        }
    }
}

/// A result: a plain string where it is only text, which every server takes.
fn output(result: &ToolResult, ids: &CallIds, custom: &[String]) -> Value {
    let only_text = result.output.iter().all(|piece| matches!(piece, Content::Text { .. }));
    let output = if only_text {
        Value::String(plain_text(&result.output))
    } else {
        Value::Array(result.output.iter().map(part).collect())
    };
    let kind = if custom.contains(&result.provider_call_id) {
        "custom_tool_call_output"
    } else {
        "function_call_output"
    };
    json!({ "type": kind, "call_id": ids.for_result(&result.provider_call_id), "output": output })
}
