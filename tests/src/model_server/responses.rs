//! The OpenAI Responses wire: reads a stateless request strictly and writes a reply as its event stream.

use super::check::{Check, conversation, list, object, optional_text, require, schema, text, tool_name};
use super::script::{End, Part, Reply, fragments};
use super::seen::{Call, Outcome, Said, Seen, Wire};
use super::stream::{Chunk, Fresh, Issued};
use serde_json::{Map, Value, json};

const REQUEST_KEYS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "store",
    "include",
    "reasoning",
    "max_output_tokens",
    "temperature",
    "top_p",
    "prompt_cache_key",
    "text",
];

/// The least `max_output_tokens` the wire takes.
const LEAST_OUTPUT: u64 = 16;

/// What the request says, or what is wrong with it.
pub(super) fn read(body: &Value, issued: &Issued) -> Check<Seen> {
    let request = object(body, "request", REQUEST_KEYS)?;
    require(request.get("stream") == Some(&Value::Bool(true)), || {
        "`stream` must be true".into()
    })?;
    require(request.get("store") == Some(&Value::Bool(false)), || {
        "`store` must be false".into()
    })?;
    let limit = request.get("max_output_tokens").and_then(Value::as_u64);
    require(limit.is_none_or(|limit| limit >= LEAST_OUTPUT), || {
        format!("`max_output_tokens` must be {LEAST_OUTPUT} or more")
    })?;

    let tools = tools(request)?;
    let mut said = Vec::new();
    let mut thought = false;
    for (at, item) in list(request, "request", "input")?.iter().enumerate() {
        let at = format!("input[{at}]");
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
        let by_model = kind == "function_call" || item.get("role") == Some(&json!("assistant"));
        require(!thought || by_model || kind == "reasoning", || {
            format!("{at}: the reasoning before it led to nothing")
        })?;
        thought = kind == "reasoning";
        match kind {
            "message" => message(item, &at, &mut said)?,
            "reasoning" => reasoning(item, &at, issued)?,
            "function_call" => call(item, &at, &mut said)?,
            "function_call_output" => output(item, &at, &mut said)?,
            other => return Err(format!("{at}: unknown item `{other}`")),
        }
    }
    require(!thought, || "the last item is reasoning without what it led to".into())?;
    conversation(&said, &tools)?;
    Ok(Seen {
        wire: Wire::Responses,
        model: text(request, "request", "model")?.into(),
        system: optional_text(request, "request", "instructions")?
            .unwrap_or_default()
            .into(),
        said,
        tools,
        key: None,
        body: body.clone(),
    })
}

fn tools(request: &Map<String, Value>) -> Check<Vec<String>> {
    let Some(tools) = request.get("tools") else {
        return Ok(Vec::new());
    };
    let tools = tools.as_array().ok_or("`tools` must be a list")?;
    tools
        .iter()
        .enumerate()
        .map(|(at, tool)| {
            let at = format!("tools[{at}]");
            let tool = object(tool, &at, &["type", "name", "description", "parameters", "strict"])?;
            require(text(tool, &at, "type")? == "function", || {
                format!("{at}: `type` must be \"function\"")
            })?;
            let name = text(tool, &at, "name")?;
            tool_name(name, &at)?;
            schema(tool.get("parameters").unwrap_or(&Value::Null), &at)?;
            Ok(name.to_owned())
        })
        .collect()
}

/// Text of a message's content; images are named.
fn content(item: &Map<String, Value>, at: &str, known: &[&str]) -> Check<String> {
    if let Some(Value::String(text)) = item.get("content") {
        return Ok(text.clone());
    }
    let parts = list(item, at, "content")?
        .iter()
        .map(|part| {
            let part = object(
                part,
                at,
                &[
                    "type",
                    "text",
                    "refusal",
                    "image_url",
                    "annotations",
                    "logprobs",
                    "detail",
                ],
            )?;
            let kind = text(part, at, "type")?;
            require(known.contains(&kind), || format!("{at}: content cannot hold `{kind}`"))?;
            match kind {
                "input_image" => Ok("[image]"),
                "refusal" => text(part, at, "refusal"),
                _ => text(part, at, "text"),
            }
        })
        .collect::<Check<Vec<&str>>>()?;
    require(!parts.is_empty(), || format!("{at}: empty content"))?;
    Ok(parts.join("\n"))
}

fn message(item: &Value, at: &str, said: &mut Vec<Said>) -> Check<()> {
    let item = object(item, at, &["type", "role", "content", "id", "status", "phase"])?;
    match text(item, at, "role")? {
        "user" => said.push(Said::User(content(item, at, &["input_text", "input_image"])?)),
        "assistant" => {
            let more = content(item, at, &["output_text", "refusal"])?;
            let (text, _) = reply(said)?;
            text.push_str(&more);
        }
        other => return Err(format!("{at}: unknown role `{other}`")),
    }
    Ok(())
}

/// The reply that the items belong to: the last one, if nothing came after it.
fn reply(said: &mut Vec<Said>) -> Check<(&mut String, &mut Vec<Call>)> {
    if !matches!(said.last(), Some(Said::Assistant { .. })) {
        said.push(Said::Assistant {
            text: String::new(),
            calls: Vec::new(),
        });
    }
    match said.last_mut() {
        Some(Said::Assistant { text, calls }) => Ok((text, calls)),
        _ => Err("no reply to add to".into()),
    }
}

fn reasoning(item: &Value, at: &str, issued: &Issued) -> Check<()> {
    let item = object(
        item,
        at,
        &["type", "id", "summary", "encrypted_content", "content", "status"],
    )?;
    list(item, at, "summary")?;
    let sealed = text(item, at, "encrypted_content")?;
    let id = text(item, at, "id")?;
    require(issued.signed(sealed, id), || {
        format!("{at}: a reasoning item that was changed")
    })
}

fn call(item: &Value, at: &str, said: &mut Vec<Said>) -> Check<()> {
    let item = object(item, at, &["type", "id", "call_id", "name", "arguments", "status"])?;
    let name = text(item, at, "name")?.to_owned();
    tool_name(&name, at)?;
    let arguments = serde_json::from_str(text(item, at, "arguments")?)
        .map_err(|error| format!("{at}: a call's arguments are not JSON: {error}"))?;
    let id = text(item, at, "call_id")?.to_owned();
    let (_, calls) = reply(said)?;
    calls.push(Call { id, name, arguments });
    Ok(())
}

fn output(item: &Value, at: &str, said: &mut Vec<Said>) -> Check<()> {
    let item = object(item, at, &["type", "call_id", "output", "id", "status"])?;
    let output = match item.get("output") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(_)) => "[parts]".to_owned(),
        _ => return Err(format!("{at}: `output` must be a string or a list")),
    };
    let outcome = Outcome {
        id: text(item, at, "call_id")?.into(),
        output,
    };
    match said.last_mut() {
        Some(Said::Results(results)) => results.push(outcome),
        _ => said.push(Said::Results(vec![outcome])),
    }
    Ok(())
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}

/// The reply as the wire's events. What a `gate` paces are the fragments of its parts.
pub(super) fn write(reply: &Reply, seen: &Seen, fresh: &Fresh, issued: &Issued) -> Vec<Chunk> {
    let id = fresh.id("resp_");
    let response = |status: &str, rest: Value| {
        let mut response = json!({"id": id, "object": "response", "model": seen.model, "status": status, "output": []});
        if let (Some(response), Value::Object(rest)) = (response.as_object_mut(), rest) {
            response.extend(rest);
        }
        json!({ "response": response })
    };
    let mut chunks = vec![Chunk::at_once(event(
        "response.created",
        response("in_progress", json!({})),
    ))];
    for (index, part) in reply.parts.iter().enumerate() {
        write_part(index, part, fresh, issued, &mut chunks);
    }
    let usage = json!({"usage": {
        "input_tokens": reply.usage.input, "input_tokens_details": {"cached_tokens": reply.usage.cached},
        "output_tokens": reply.usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.usage.input + reply.usage.output,
    }});
    let last = match &reply.end {
        End::Done | End::Refusal => event("response.completed", response("completed", usage)),
        End::MaxTokens => {
            let mut rest = usage;
            rest["incomplete_details"] = json!({"reason": "max_output_tokens"});
            event("response.incomplete", response("incomplete", rest))
        }
        End::Error { kind, message } => {
            let error = json!({"error": {"code": kind, "message": message}});
            event("response.failed", response("failed", error))
        }
        End::Stall | End::Cut | End::Drop | End::Status { .. } => return chunks,
    };
    chunks.push(Chunk::at_once(last));
    chunks
}

fn write_part(index: usize, part: &Part, fresh: &Fresh, issued: &Issued, chunks: &mut Vec<Chunk>) {
    let at = |mut data: Value| {
        data["output_index"] = index.into();
        data
    };
    let (open, whole, delta, pieces) = match part {
        Part::Text { text, deltas } => {
            let id = fresh.id("msg_");
            let item = |status: &str, content: Value| json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": content});
            let whole = item(
                "completed",
                json!([{"type": "output_text", "text": text, "annotations": []}]),
            );
            (
                item("in_progress", json!([])),
                whole,
                "response.output_text.delta",
                fragments(text, *deltas),
            )
        }
        Part::Reasoning { text, deltas } => {
            let (id, sealed) = (fresh.id("rs_"), fresh.id("sealed_"));
            issued.sign(&sealed, &id);
            let item = |summary: Value| json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": sealed});
            let whole = item(json!([{"type": "summary_text", "text": text}]));
            (
                item(json!([])),
                whole,
                "response.reasoning_summary_text.delta",
                fragments(text, *deltas),
            )
        }
        Part::Call {
            name,
            arguments,
            deltas,
        } => {
            let raw = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            let (id, call) = (fresh.id("fc_"), fresh.id("call_"));
            let item = |arguments: &str| json!({"type": "function_call", "id": id, "call_id": call, "name": name, "arguments": arguments});
            (
                item(""),
                item(&raw),
                "response.function_call_arguments.delta",
                fragments(&raw, *deltas),
            )
        }
    };
    chunks.push(Chunk::at_once(event(
        "response.output_item.added",
        at(json!({ "item": open })),
    )));
    chunks.extend(pieces.into_iter().map(|piece| {
        Chunk::paced(event(
            delta,
            at(json!({"delta": piece, "content_index": 0, "summary_index": 0})),
        ))
    }));
    chunks.push(Chunk::at_once(event(
        "response.output_item.done",
        at(json!({ "item": whole })),
    )));
}
