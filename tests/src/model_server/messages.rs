//! The Anthropic Messages wire: reads a request strictly and writes a reply as its event stream.

use super::check::{Check, conversation, list, object, optional_text, require, schema, text, tool_name};
use super::script::{End, Part, Reply, fragments};
use super::seen::{Call, Outcome, Said, Seen, Wire};
use super::stream::{Chunk, Fresh, Issued};
use serde_json::{Map, Value, json};

const REQUEST_KEYS: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "output_config",
    "cache_control",
];

/// Marks a request may set at most.
const CACHE_MARKS: usize = 4;

/// What the request says, or what is wrong with it.
pub(super) fn read(body: &Value, issued: &Issued) -> Check<Seen> {
    let request = object(body, "request", REQUEST_KEYS)?;
    require(request.get("stream") == Some(&Value::Bool(true)), || {
        "`stream` must be true".into()
    })?;
    let max_tokens = request.get("max_tokens").and_then(Value::as_u64).unwrap_or(0);
    require(max_tokens > 0, || "`max_tokens` must be a positive number".into())?;
    thinking(request, max_tokens)?;
    let marks = body.to_string().matches("\"cache_control\":").count();
    require(marks <= CACHE_MARKS, || {
        format!("{marks} cache marks, at most {CACHE_MARKS} are allowed")
    })?;

    let tools = tools(request)?;
    let mut said = Vec::new();
    let mut last_role = "";
    for (at, message) in list(request, "request", "messages")?.iter().enumerate() {
        let at = format!("messages[{at}]");
        let message = object(message, &at, &["role", "content"])?;
        let role = text(message, &at, "role")?;
        require(role != last_role, || format!("{at}: role `{role}` twice in a row"))?;
        last_role = role;
        let blocks = blocks(message, &at)?;
        match role {
            "user" => user(&blocks, &at, &mut said)?,
            "assistant" => said.push(assistant(&blocks, &at, issued)?),
            _ => return Err(format!("{at}: unknown role `{role}`")),
        }
    }
    conversation(&said, &tools)?;
    Ok(Seen {
        wire: Wire::Messages,
        model: text(request, "request", "model")?.into(),
        system: system(request)?,
        said,
        tools,
        key: None,
        body: body.clone(),
    })
}

fn thinking(request: &Map<String, Value>, max_tokens: u64) -> Check<()> {
    let Some(thinking) = request.get("thinking") else {
        return Ok(());
    };
    let budget = thinking.get("budget_tokens").and_then(Value::as_u64);
    let fits = budget.is_none_or(|budget| (1024..max_tokens).contains(&budget));
    require(fits, || {
        format!("`thinking.budget_tokens` must be 1024 or more and under max_tokens {max_tokens}")
    })?;
    let cold = matches!(request.get("temperature").map(Value::as_f64), None | Some(Some(1.0)));
    require(cold, || "`temperature` must be 1 or absent with thinking".into())
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
            let tool = object(
                tool,
                &at,
                &["name", "description", "input_schema", "cache_control", "strict"],
            )?;
            let name = text(tool, &at, "name")?;
            tool_name(name, &at)?;
            text(tool, &at, "description")?;
            schema(tool.get("input_schema").unwrap_or(&Value::Null), &at)?;
            Ok(name.to_owned())
        })
        .collect()
}

fn system(request: &Map<String, Value>) -> Check<String> {
    match request.get("system") {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(blocks)) => {
            let texts: Check<Vec<&str>> = blocks
                .iter()
                .map(|block| {
                    let block = object(block, "system", &["type", "text", "cache_control"])?;
                    text(block, "system", "text")
                })
                .collect();
            Ok(texts?.join("\n"))
        }
        Some(other) => Err(format!("`system` must be a string or a list of texts, got {other}")),
    }
}

/// The content as blocks; a bare string is one text block.
fn blocks(message: &Map<String, Value>, at: &str) -> Check<Vec<Value>> {
    let blocks = match message.get("content") {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => return Err(format!("{at}: `content` must be a string or a list")),
    };
    require(!blocks.is_empty(), || format!("{at}: empty content"))?;
    Ok(blocks)
}

fn kind<'a>(block: &'a Value, at: &str) -> Check<&'a str> {
    block
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(|| format!("{at}: a block without a type"))
}

fn text_block<'a>(block: &'a Value, at: &str) -> Check<&'a str> {
    let block = object(block, at, &["type", "text", "cache_control", "citations"])?;
    let said = text(block, at, "text")?;
    require(!said.trim().is_empty(), || format!("{at}: an empty text block"))?;
    Ok(said)
}

fn user(blocks: &[Value], at: &str, said: &mut Vec<Said>) -> Check<()> {
    let (mut results, mut texts) = (Vec::new(), Vec::new());
    for block in blocks {
        match kind(block, at)? {
            "tool_result" => {
                require(texts.is_empty(), || format!("{at}: a tool result after other content"))?;
                results.push(result(block, at)?);
            }
            "text" => texts.push(text_block(block, at)?.to_owned()),
            "image" => texts.push(image(block, at)?),
            other => return Err(format!("{at}: a user message cannot hold `{other}`")),
        }
    }
    if !results.is_empty() {
        said.push(Said::Results(results));
    }
    if !texts.is_empty() {
        said.push(Said::User(texts.join("\n")));
    }
    Ok(())
}

fn image(block: &Value, at: &str) -> Check<String> {
    let block = object(block, at, &["type", "source", "cache_control"])?;
    let source = object(
        block.get("source").unwrap_or(&Value::Null),
        at,
        &["type", "media_type", "data", "url"],
    )?;
    Ok(format!(
        "[image {}]",
        optional_text(source, at, "media_type")?.unwrap_or("by URL")
    ))
}

fn result(block: &Value, at: &str) -> Check<Outcome> {
    let block = object(
        block,
        at,
        &["type", "tool_use_id", "content", "is_error", "cache_control"],
    )?;
    let output = match block.get("content") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(pieces)) => {
            let texts: Check<Vec<String>> = pieces
                .iter()
                .map(|piece| match kind(piece, at)? {
                    "text" => text_block(piece, at).map(str::to_owned),
                    "image" => image(piece, at),
                    other => Err(format!("{at}: a tool result cannot hold `{other}`")),
                })
                .collect();
            texts?.join("\n")
        }
        Some(other) => {
            return Err(format!(
                "{at}: a tool result's content must be text or a list, got {other}"
            ));
        }
    };
    let id = text(block, at, "tool_use_id")?.into();
    Ok(Outcome { id, output })
}

fn assistant(blocks: &[Value], at: &str, issued: &Issued) -> Check<Said> {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for block in blocks {
        match kind(block, at)? {
            "text" => texts.push(text_block(block, at)?),
            "thinking" => {
                let block = object(block, at, &["type", "thinking", "signature"])?;
                let (thought, signature) = (text(block, at, "thinking")?, text(block, at, "signature")?);
                require(issued.signed(signature, thought), || {
                    format!("{at}: a thinking block that was changed")
                })?;
            }
            "tool_use" => {
                let block = object(block, at, &["type", "id", "name", "input", "cache_control"])?;
                let arguments = block.get("input").cloned().unwrap_or_default();
                require(arguments.is_object(), || format!("{at}: `input` must be an object"))?;
                let name = text(block, at, "name")?.to_owned();
                tool_name(&name, at)?;
                calls.push(Call {
                    id: text(block, at, "id")?.into(),
                    name,
                    arguments,
                });
            }
            other => return Err(format!("{at}: a model's message cannot hold `{other}`")),
        }
    }
    Ok(Said::Assistant {
        text: texts.join("\n"),
        calls,
    })
}

/// An error's body.
pub(super) fn error_body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

fn event(data: &Value) -> String {
    let kind = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {kind}\ndata: {data}\n\n")
}

/// The reply as the wire's events. What a `gate` paces are the fragments of its parts.
pub(super) fn write(reply: &Reply, seen: &Seen, fresh: &Fresh, issued: &Issued) -> Vec<Chunk> {
    let usage = &reply.usage;
    let sent = json!({
        "input_tokens": usage.input.saturating_sub(usage.cached), "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0, "output_tokens": 1,
    });
    let mut chunks = vec![Chunk::at_once(event(&json!({"type": "message_start", "message": {
        "id": fresh.id("msg_"), "type": "message", "role": "assistant", "model": seen.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": sent,
    }})))];
    for (index, part) in reply.parts.iter().enumerate() {
        write_part(index, part, fresh, issued, &mut chunks);
    }
    let stop = match &reply.end {
        End::Done if reply.calls() => "tool_use",
        End::Done => "end_turn",
        End::MaxTokens => "max_tokens",
        End::Refusal => "refusal",
        End::Error { kind, message } => {
            chunks.push(Chunk::at_once(format!(
                "event: error\ndata: {}\n\n",
                error_body(kind, message)
            )));
            return chunks;
        }
        End::Stall | End::Cut | End::Drop | End::Status { .. } => return chunks,
    };
    chunks.push(Chunk::at_once(event(&json!({
        "type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": usage.output},
    }))));
    chunks.push(Chunk::at_once(event(&json!({"type": "message_stop"}))));
    chunks
}

fn write_part(index: usize, part: &Part, fresh: &Fresh, issued: &Issued, chunks: &mut Vec<Chunk>) {
    let (start, deltas) = match part {
        Part::Text { text, deltas } => (
            json!({"type": "text", "text": ""}),
            paced(
                fragments(text, *deltas),
                |text| json!({"type": "text_delta", "text": text}),
            ),
        ),
        Part::Reasoning { text, deltas } => {
            let signature = fresh.id("sig_");
            issued.sign(&signature, text);
            let mut thoughts = paced(
                fragments(text, *deltas),
                |text| json!({"type": "thinking_delta", "thinking": text}),
            );
            thoughts.push(json!({"type": "signature_delta", "signature": signature}));
            (json!({"type": "thinking", "thinking": "", "signature": ""}), thoughts)
        }
        Part::Call {
            name,
            arguments,
            deltas,
        } => {
            let raw = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            let mut pieces = vec![json!({"type": "input_json_delta", "partial_json": ""})];
            pieces.extend(paced(
                fragments(&raw, *deltas),
                |json| json!({"type": "input_json_delta", "partial_json": json}),
            ));
            (
                json!({"type": "tool_use", "id": fresh.id("toolu_"), "name": name, "input": {}}),
                pieces,
            )
        }
    };
    chunks.push(Chunk::at_once(event(
        &json!({"type": "content_block_start", "index": index, "content_block": start}),
    )));
    chunks.extend(deltas.into_iter().map(|delta| {
        Chunk::paced(event(
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        ))
    }));
    chunks.push(Chunk::at_once(event(
        &json!({"type": "content_block_stop", "index": index}),
    )));
}

fn paced(pieces: Vec<String>, delta: impl Fn(String) -> Value) -> Vec<Value> {
    pieces.into_iter().map(delta).collect()
}
