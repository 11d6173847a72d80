//! The OpenAI Chat Completions wire: reads a request strictly and writes a reply as its chunk stream.

use super::check::{Check, conversation, list, object, optional_text, require, schema, text, tool_name};
use super::script::{End, Part, Reply, fragments};
use super::seen::{Call, Outcome, Said, Seen, Wire};
use super::stream::{Chunk, Fresh};
use serde_json::{Map, Value, json};

const REQUEST_KEYS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "reasoning_effort",
    "stop",
    "prompt_cache_key",
    "user",
];

/// What the request says, or what is wrong with it.
pub(super) fn read(body: &Value) -> Check<Seen> {
    let request = object(body, "request", REQUEST_KEYS)?;
    require(request.get("stream") == Some(&Value::Bool(true)), || {
        "`stream` must be true".into()
    })?;
    let counts = request.get("stream_options") == Some(&json!({"include_usage": true}));
    require(counts, || {
        "`stream_options` must be {\"include_usage\": true}: without it no usage comes".into()
    })?;

    let tools = tools(request)?;
    let (mut system, mut said) = (Vec::new(), Vec::new());
    for (at, message) in list(request, "request", "messages")?.iter().enumerate() {
        let at = format!("messages[{at}]");
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        match role {
            "system" | "developer" => {
                require(said.is_empty(), || {
                    format!("{at}: a system message after the conversation began")
                })?;
                system.push(content(object(message, &at, &["role", "content"])?, &at)?);
            }
            "user" => said.push(Said::User(content(object(message, &at, &["role", "content"])?, &at)?)),
            "assistant" => said.push(assistant(message, &at)?),
            "tool" => result(message, &at, &mut said)?,
            _ => return Err(format!("{at}: unknown role `{role}`")),
        }
    }
    conversation(&said, &tools)?;
    Ok(Seen {
        wire: Wire::Chat,
        model: text(request, "request", "model")?.into(),
        system: system.join("\n"),
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
    require(!tools.is_empty(), || "`tools` must not be empty".into())?;
    tools
        .iter()
        .enumerate()
        .map(|(at, tool)| {
            let at = format!("tools[{at}]");
            let tool = object(tool, &at, &["type", "function"])?;
            require(text(tool, &at, "type")? == "function", || {
                format!("{at}: `type` must be \"function\"")
            })?;
            let function = tool.get("function").unwrap_or(&Value::Null);
            let function = object(function, &at, &["name", "description", "parameters", "strict"])?;
            let name = text(function, &at, "name")?;
            tool_name(name, &at)?;
            text(function, &at, "description")?;
            schema(function.get("parameters").unwrap_or(&Value::Null), &at)?;
            Ok(name.to_owned())
        })
        .collect()
}

/// A message's content as text; images are named.
fn content(message: &Map<String, Value>, at: &str) -> Check<String> {
    match message.get("content") {
        Some(Value::String(text)) => {
            require(!text.is_empty(), || format!("{at}: empty content"))?;
            Ok(text.clone())
        }
        Some(Value::Array(parts)) => {
            require(!parts.is_empty(), || format!("{at}: empty content"))?;
            let texts: Check<Vec<String>> = parts
                .iter()
                .map(|part| match part.get("type").and_then(Value::as_str) {
                    Some("text") => Ok(text(object(part, at, &["type", "text"])?, at, "text")?.to_owned()),
                    Some("image_url") => {
                        object(part, at, &["type", "image_url"])?;
                        Ok("[image]".to_owned())
                    }
                    other => Err(format!("{at}: content cannot hold {other:?}")),
                })
                .collect();
            Ok(texts?.join("\n"))
        }
        _ => Err(format!("{at}: `content` must be a string or a list")),
    }
}

fn assistant(message: &Value, at: &str) -> Check<Said> {
    let known = &[
        "role",
        "content",
        "tool_calls",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "refusal",
    ];
    let message = object(message, at, known)?;
    let said = match message.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(_) => content(message, at)?,
    };
    let calls = match message.get("tool_calls") {
        None => Vec::new(),
        Some(_) => list(message, at, "tool_calls")?
            .iter()
            .map(|asked| call(asked, at))
            .collect::<Check<Vec<Call>>>()?,
    };
    let refused = optional_text(message, at, "refusal")?.is_some();
    require(!said.is_empty() || !calls.is_empty() || refused, || {
        format!("{at}: the model's message says nothing")
    })?;
    Ok(Said::Assistant { text: said, calls })
}

fn call(call: &Value, at: &str) -> Check<Call> {
    let call = object(call, at, &["id", "type", "function"])?;
    require(text(call, at, "type")? == "function", || {
        format!("{at}: a call's `type` must be \"function\"")
    })?;
    let function = call.get("function").unwrap_or(&Value::Null);
    let function = object(function, at, &["name", "arguments"])?;
    let name = text(function, at, "name")?.to_owned();
    tool_name(&name, at)?;
    let arguments = serde_json::from_str(text(function, at, "arguments")?)
        .map_err(|error| format!("{at}: a call's arguments are not JSON: {error}"))?;
    let id = text(call, at, "id")?.into();
    Ok(Call { id, name, arguments })
}

/// A tool message joins the results that stand directly before it.
fn result(message: &Value, at: &str, said: &mut Vec<Said>) -> Check<()> {
    let message = object(message, at, &["role", "tool_call_id", "content"])?;
    let output = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        _ => content(message, at)?,
    };
    let id = text(message, at, "tool_call_id")?.into();
    let outcome = Outcome { id, output };
    match said.last_mut() {
        Some(Said::Results(results)) => results.push(outcome),
        _ => said.push(Said::Results(vec![outcome])),
    }
    Ok(())
}

/// An error's body.
pub(super) fn error_body(kind: &str, message: &str) -> String {
    json!({"error": {"message": message, "type": kind, "param": null, "code": kind}}).to_string()
}

/// The reply as the wire's chunks. What a `gate` paces are the fragments of its parts.
pub(super) fn write(reply: &Reply, seen: &Seen, fresh: &Fresh) -> Vec<Chunk> {
    let id = fresh.id("chatcmpl-");
    let chunk = |choices: Value, usage: Value| {
        let data = json!({
            "id": id, "object": "chat.completion.chunk", "created": 0, "model": seen.model,
            "choices": choices, "usage": usage,
        });
        format!("data: {data}\n\n")
    };
    let delta = |delta: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            Value::Null,
        )
    };

    let mut chunks = vec![Chunk::at_once(delta(json!({"role": "assistant", "content": ""})))];
    let mut calls = 0..;
    for part in &reply.parts {
        write_part(part, &mut calls, fresh, &delta, &mut chunks);
    }
    let finish = match &reply.end {
        End::Done if reply.calls() => "tool_calls",
        End::Done => "stop",
        End::MaxTokens => "length",
        End::Refusal => "content_filter",
        End::Error { kind, message } => {
            chunks.push(Chunk::at_once(format!("data: {}\n\n", error_body(kind, message))));
            return chunks;
        }
        End::Stall | End::Cut | End::Drop | End::Status { .. } => return chunks,
    };
    chunks.push(Chunk::at_once(chunk(
        json!([{"index": 0, "delta": {}, "finish_reason": finish}]),
        Value::Null,
    )));
    let usage = &reply.usage;
    chunks.push(Chunk::at_once(chunk(
        json!([]),
        json!({
            "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        }),
    )));
    chunks.push(Chunk::at_once("data: [DONE]\n\n".into()));
    chunks
}

fn write_part(
    part: &Part,
    calls: &mut impl Iterator<Item = usize>,
    fresh: &Fresh,
    delta: &impl Fn(Value) -> String,
    chunks: &mut Vec<Chunk>,
) {
    match part {
        Part::Text { text, deltas } => {
            let pieces = fragments(text, *deltas).into_iter();
            chunks.extend(pieces.map(|text| Chunk::paced(delta(json!({"content": text})))));
        }
        Part::Reasoning { text, deltas } => {
            let pieces = fragments(text, *deltas).into_iter();
            chunks.extend(pieces.map(|text| Chunk::paced(delta(json!({"reasoning_content": text})))));
        }
        Part::Call {
            name,
            arguments,
            deltas,
        } => {
            let index = calls.next().unwrap_or_default();
            let raw = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            chunks.push(Chunk::at_once(delta(json!({"tool_calls": [{
                "index": index, "id": fresh.id("call_"), "type": "function", "function": {"name": name, "arguments": ""},
            }]}))));
            let pieces = fragments(&raw, *deltas).into_iter();
            chunks.extend(pieces.map(|json| {
                Chunk::paced(delta(
                    json!({"tool_calls": [{"index": index, "function": {"arguments": json}}]}),
                ))
            }));
        }
    }
}
