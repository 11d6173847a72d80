//! A decoded stream in the form the recorded streams' `expected` has, for the `decode` tool and for tests.
//!
//! The form is defined by the fixtures' reference normaliser: texts joined and by part, client calls with their raw
//! arguments, the provider's own tools, stop word and meaning, usage as reported, error, and what must be replayed.

use protocol::Stop;
use serde_json::{Map, Value, json};

use super::decoded::{Call, CallForm, Decoded, Item, Part, ReportedUsage};
use crate::config::profile::Wire;

/// `decoded`, which came over `wire`, as a JSON object.
pub fn normalised(wire: Wire, decoded: &Decoded) -> Value {
    let text = |item: &Item| match item {
        Item::Text { parts, .. } => parts.clone(),
        _ => Vec::new(),
    };
    let reasoning = |item: &Item| match item {
        Item::Reasoning { parts, .. } => parts.clone(),
        _ => Vec::new(),
    };
    let refusal = |item: &Item| match item {
        Item::Refusal { text } => text.clone(),
        _ => String::new(),
    };
    let text_parts = parts(wire, decoded, text);
    let reasoning_parts = parts(wire, decoded, reasoning);
    json!({
        "protocol": protocol(wire),
        "id": decoded.id,
        "model": decoded.model,
        "text": text_parts.concat(),
        "text_parts": text_parts,
        "reasoning": reasoning_parts.concat(),
        "reasoning_parts": reasoning_parts,
        "refusal": decoded.items.iter().map(refusal).collect::<String>(),
        "tool_calls": decoded.items.iter().filter_map(|item| tool_call(wire, item)).collect::<Vec<_>>(),
        "server_tool_calls": decoded.items.iter().filter_map(|item| server_tool_call(wire, item)).collect::<Vec<_>>(),
        "stop_reason": decoded.stop_reason,
        "stop": stop(decoded),
        "usage": usage(&decoded.usage),
        "error": error(decoded),
        "complete": decoded.complete,
        "replay": decoded.replay,
    })
}

fn protocol(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => "anthropic",
        Wire::OpenaiChat => "openai-chat",
        Wire::OpenaiResponses => "openai-responses",
        Wire::Demo => "demo",
    }
}

/// The texts of all parts in order of appearance. Chat Completions knows no parts: one text, or none.
fn parts(wire: Wire, decoded: &Decoded, of: impl Fn(&Item) -> Vec<Part>) -> Vec<String> {
    let mut parts: Vec<Part> = decoded.items.iter().flat_map(of).collect();
    parts.sort_by_key(|part| part.order);
    parts
        .into_iter()
        .map(|part| part.text)
        .filter(|text| wire != Wire::OpenaiChat || !text.is_empty())
        .collect()
}

fn tool_call(wire: Wire, item: &Item) -> Option<Value> {
    let Item::Call(call) = item else { return None };
    let (arguments, valid) = arguments(call);
    let mut out = json!({
        "id": call.id,
        "name": call.name,
        "arguments": arguments,
        "arguments_raw": call.arguments,
        "arguments_valid": valid,
        "kind": match call.form {
            CallForm::Function => "function",
            CallForm::Custom => "custom",
        },
    });
    if wire == Wire::OpenaiResponses {
        out["item_id"] = json!(call.item_id);
    }
    Some(out)
}

fn arguments(call: &Call) -> (Value, bool) {
    match call.form {
        CallForm::Custom => (json!(call.arguments), true),
        CallForm::Function if call.arguments.trim().is_empty() => (json!({}), true),
        CallForm::Function => match serde_json::from_str(&call.arguments) {
            Ok(arguments) => (arguments, true),
            Err(_) => (Value::Null, false),
        },
    }
}

fn server_tool_call(wire: Wire, item: &Item) -> Option<Value> {
    let Item::ServerCall {
        kind,
        id,
        name,
        arguments,
        ..
    } = item
    else {
        return None;
    };
    let mut out = Map::from_iter([("type".to_owned(), json!(kind)), ("id".to_owned(), json!(id))]);
    out.insert("name".to_owned(), json!(name));
    if wire == Wire::AnthropicMessages {
        out.insert("arguments".to_owned(), json!(arguments));
    }
    Some(Value::Object(out))
}

fn stop(decoded: &Decoded) -> &'static str {
    let reason = decoded.stop_reason.as_deref();
    if decoded.error.is_some() || reason == Some("error") {
        return "error";
    }
    match decoded.stop {
        None => "none",
        Some(Stop::EndTurn) => "end_turn",
        Some(Stop::ToolUse) => "tool_use",
        Some(Stop::MaxTokens) => "max_tokens",
        Some(Stop::StopSequence) => "stop_sequence",
        Some(Stop::Refusal) => "refusal",
        Some(Stop::ContentFilter) => "content_filter",
        Some(Stop::PauseTurn) => "pause_turn",
        Some(Stop::ContextWindow) => "context_window",
        Some(Stop::Other) if reason == Some("compaction") => "compaction",
        Some(Stop::Other) => "other",
    }
}

fn usage(usage: &ReportedUsage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cached,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "input_total": usage.input_total,
    })
}

fn error(decoded: &Decoded) -> Value {
    match &decoded.error {
        Some(error) => json!({ "type": error.kind, "message": error.message, "code": error.code }),
        None => Value::Null,
    }
}
