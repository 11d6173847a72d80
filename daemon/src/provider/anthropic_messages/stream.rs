//! Reads an Anthropic stream: `message_start`, blocks one after another, `message_delta`, `message_stop`.

use protocol::Stop;
use serde_json::{Map, Value, json};

use super::wire::{Delta, Event, Input, Message, StopDetails};
use crate::provider::decoded::{
    Budget, Call, CallEnd, CallForm, Decoded, Decoder, InStreamError, Item, Part, Progress, ReplyTooLarge,
    ReportedUsage,
};
use crate::provider::{ItemKind, Sink, json_text, lenient, sse};

/// The events that carry something of the reply.
const KINDS: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "error",
];

/// The state of one stream.
#[derive(Debug, Default)]
pub(in crate::provider) struct Stream {
    decoded: Decoded,
    /// In order of appearance; a block's place is its item's number.
    blocks: Vec<Block>,
    /// Reported figures; later ones replace earlier ones field by field.
    usage: Map<String, Value>,
    budget: Budget,
}

/// A content block while it grows.
#[derive(Debug)]
struct Block {
    /// Its number on the wire.
    index: Option<u64>,
    /// The block as `content_block_start` sent it, without what `text` took over.
    start: Map<String, Value>,
    /// Text, thinking or joined argument JSON.
    text: String,
    signature: Option<String>,
    citations: Vec<Value>,
    /// `input` of the start event: a placeholder, but for calls that come without any delta.
    input: String,
    end: CallEnd,
}

impl Block {
    /// The block `raw` starts. `None` if it is no object.
    fn start(index: Option<u64>, raw: &str) -> Option<Self> {
        let mut start = serde_json::from_str::<Map<String, Value>>(raw).ok()?;
        let input = serde_json::from_str::<Input<'_>>(raw)
            .ok()
            .and_then(|start| start.input);
        let kind = start.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut take = |field: &str| start.remove(field).and_then(|text| text.as_str().map(str::to_owned));
        let (text, signature) = match kind.as_str() {
            "text" => (take("text"), None),
            "thinking" => (take("thinking"), take("signature")),
            _ => (None, None),
        };
        let citations = match start.remove("citations") {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        Some(Self {
            index,
            start,
            text: text.unwrap_or_default(),
            signature,
            citations,
            input: input
                .map(|input| json_text::spaced(input.get()))
                .filter(|input| input != "{}")
                .unwrap_or_default(),
            end: CallEnd::Open,
        })
    }

    fn kind(&self) -> &str {
        self.field("type").unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.start.get(name).and_then(Value::as_str)
    }

    fn item_kind(&self) -> ItemKind {
        match self.kind() {
            "text" => ItemKind::Text,
            "thinking" => ItemKind::Reasoning,
            "tool_use" => ItemKind::Call {
                name: self.field("name").unwrap_or_default().to_owned(),
                provider_call_id: self.field("id").unwrap_or_default().to_owned(),
            },
            _ => ItemKind::Opaque,
        }
    }
}

impl Decoder for Stream {
    fn event(&mut self, event: &sse::Event, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let data = event.data();
        let data = data.trim();
        // A gateway ends its streams with the marker of another protocol.
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let mut mended = None;
        let Some(parsed) = lenient::parse::<Event<'_>>(data, &mut mended) else {
            self.decoded.damaged |= lenient::loses(data, &KINDS);
            return Ok(());
        };
        let name = event.name();
        match parsed.kind.filled().unwrap_or(&name) {
            "content_block_delta" => self.block_delta(&parsed, sink)?,
            "content_block_start" => self.block_start(&parsed, sink)?,
            "content_block_stop" => self.block_stop(parsed.index.0),
            "message_start" => self.message_start(&parsed),
            "message_delta" => self.message_delta(&parsed),
            "message_stop" => self.decoded.complete = true,
            "error" => self.decoded.error = Some(InStreamError::from_value(&parsed.error.unwrap_or_default())),
            // A gateway's own failure carries no type.
            "" if parsed.error.is_some() => self.decoded.error = parsed.error.as_ref().map(InStreamError::from_value),
            _ => {}
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.decoded.complete || self.decoded.error.is_some() {
            Progress::Ended
        } else {
            Progress::Running
        }
    }

    fn finish(self: Box<Self>) -> Decoded {
        let mut decoded = self.decoded;
        decoded.usage = reported(&self.usage);
        decoded.stop = decoded.stop_reason.as_deref().map(stop);
        for (order, block) in self.blocks.into_iter().enumerate() {
            decoded.replay.extend(verbatim(&block));
            decoded.items.push(item(block, order));
        }
        decoded
    }
}

impl Stream {
    fn message_start(&mut self, event: &Event<'_>) {
        let Some(Ok(message)) = event.message.map(|raw| serde_json::from_str::<Message<'_>>(raw.get())) else {
            return;
        };
        self.decoded.id = message.id.to_filled();
        self.decoded.model = message.model.to_filled();
        if let Some(reason) = message.stop_reason.to_filled() {
            self.decoded.stop_reason = Some(reason);
        }
        self.merge_usage(message.usage.as_ref());
    }

    fn block_start(&mut self, event: &Event<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let Some(raw) = event.content_block else { return Ok(()) };
        self.budget.spend(raw.get().len())?;
        let Some(block) = Block::start(event.index.0, raw.get()) else {
            self.decoded.damaged = true;
            return Ok(());
        };
        let item = self.blocks.len();
        sink.open(item, block.item_kind());
        if !block.text.is_empty() {
            sink.push(item, &block.text);
        }
        self.blocks.push(block);
        Ok(())
    }

    fn block_delta(&mut self, event: &Event<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let Some(delta) = &event.delta else { return Ok(()) };
        // Newest first: a number used again means the newer block.
        let found = self
            .blocks
            .iter_mut()
            .enumerate()
            .rev()
            .find(|(_, block)| block.index == event.index.0);
        let Some((item, block)) = found else { return Ok(()) };
        match delta.kind.as_str() {
            "text_delta" => grow(block, item, delta.text.as_str(), &mut self.budget, sink)?,
            "thinking_delta" => grow(block, item, delta.thinking.as_str(), &mut self.budget, sink)?,
            "input_json_delta" => grow(block, item, delta.partial_json.as_str(), &mut self.budget, sink)?,
            "compaction_delta" => grow(block, item, delta.content.as_str(), &mut self.budget, sink)?,
            "signature_delta" => {
                self.budget.spend(delta.signature.as_str().len())?;
                block
                    .signature
                    .get_or_insert_default()
                    .push_str(delta.signature.as_str());
            }
            "citations_delta" => cite(block, delta, &mut self.budget)?,
            _ => {}
        }
        Ok(())
    }

    fn block_stop(&mut self, index: Option<u64>) {
        if let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index) {
            block.end = CallEnd::Closed;
        }
    }

    fn message_delta(&mut self, event: &Event<'_>) {
        if let Some(delta) = &event.delta {
            if let Some(reason) = delta.stop_reason.to_filled() {
                self.decoded.stop_reason = Some(reason);
            }
            let details = delta
                .stop_details
                .map(|raw| serde_json::from_str::<StopDetails<'_>>(raw.get()));
            if let Some(Ok(details)) = details {
                self.decoded.refusal_reason = details.explanation.to_filled();
            }
        }
        self.merge_usage(event.usage.as_ref());
    }

    fn merge_usage(&mut self, usage: Option<&Value>) {
        for (name, figure) in usage.and_then(Value::as_object).into_iter().flatten() {
            if !figure.is_null() {
                self.usage.insert(name.clone(), figure.clone());
            }
        }
    }
}

/// Adds `text` to `block` and tells the sink, unless the item shows no text of its own.
fn grow(
    block: &mut Block,
    item: usize,
    text: &str,
    budget: &mut Budget,
    sink: &mut dyn Sink,
) -> Result<(), ReplyTooLarge> {
    if text.is_empty() {
        return Ok(());
    }
    budget.spend(text.len())?;
    block.text.push_str(text);
    if matches!(block.kind(), "text" | "thinking" | "tool_use") {
        sink.push(item, text);
    }
    Ok(())
}

fn cite(block: &mut Block, delta: &Delta<'_>, budget: &mut Budget) -> Result<(), ReplyTooLarge> {
    if let Some(citation) = &delta.citation {
        budget.spend(citation.to_string().len())?;
        block.citations.push(citation.clone());
    }
    Ok(())
}

fn item(block: Block, order: usize) -> Item {
    match block.kind() {
        "text" => {
            let private = (!block.citations.is_empty()).then(|| json!({ "citations": block.citations }));
            Item::Text {
                parts: vec![Part {
                    order,
                    text: block.text,
                }],
                private,
            }
        }
        "thinking" => {
            let signature = block.signature.filter(|signature| !signature.is_empty());
            let private = signature.map(|signature| json!({ "signature": signature }));
            Item::Reasoning {
                parts: vec![Part {
                    order,
                    text: block.text,
                }],
                private,
            }
        }
        "tool_use" => Item::Call(call(block)),
        "server_tool_use" | "mcp_tool_use" => server_call(block),
        _ => {
            let mut raw = block.start;
            if !block.text.is_empty() {
                raw.insert("content".to_owned(), Value::String(block.text));
            }
            Item::Opaque {
                raw: Value::Object(raw),
            }
        }
    }
}

fn call(block: Block) -> Call {
    // A call made by code says so, and the provider wants to read it again; a direct one needs nothing.
    let caller = block
        .start
        .get("caller")
        .filter(|caller| caller.get("type").is_some_and(|kind| kind != "direct"));
    Call {
        id: block.field("id").map(str::to_owned),
        name: block.field("name").unwrap_or_default().to_owned(),
        private: caller.map(|caller| json!({ "caller": caller })),
        arguments: arguments(&block),
        form: CallForm::Function,
        end: block.end,
        item_id: None,
    }
}

fn server_call(block: Block) -> Item {
    let arguments = arguments(&block);
    let parsed = if arguments.trim().is_empty() {
        Some(json!({}))
    } else {
        serde_json::from_str::<Value>(&arguments).ok()
    };
    let text = |name: &str| block.field(name).map(str::to_owned);
    let (kind, id, name) = (block.kind().to_owned(), text("id"), text("name"));
    let mut raw = block.start;
    raw.insert("input".to_owned(), parsed.clone().unwrap_or_else(|| json!({})));
    Item::ServerCall {
        kind,
        id,
        name,
        arguments: parsed,
        raw: Value::Object(raw),
    }
}

/// The joined argument JSON.
fn arguments(block: &Block) -> String {
    if block.text.is_empty() {
        block.input.clone()
    } else {
        block.text.clone()
    }
}

/// What the provider wants back unchanged: thinking with its signature, redacted thinking.
fn verbatim(block: &Block) -> Option<Value> {
    match block.kind() {
        "thinking" => Some(json!({ "type": "thinking", "thinking": block.text, "signature": block.signature })),
        "redacted_thinking" => Some(json!({ "type": "redacted_thinking", "data": block.start.get("data") })),
        _ => None,
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "end_turn" => Stop::EndTurn,
        "tool_use" => Stop::ToolUse,
        "max_tokens" => Stop::MaxTokens,
        "stop_sequence" => Stop::StopSequence,
        "refusal" => Stop::Refusal,
        "pause_turn" => Stop::PauseTurn,
        "model_context_window_exceeded" => Stop::ContextWindow,
        _ => Stop::Other,
    }
}

/// `input_tokens` leaves out what the cache read or wrote; the comparable number is the sum.
fn reported(usage: &Map<String, Value>) -> ReportedUsage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let input = count("input_tokens");
    let cached = count("cache_read_input_tokens");
    let cache_write = count("cache_creation_input_tokens");
    ReportedUsage {
        input,
        output: count("output_tokens"),
        cached,
        cache_write,
        reasoning: usage
            .get("output_tokens_details")
            .and_then(|details| details.get("thinking_tokens")?.as_u64()),
        input_total: input.map(|input| {
            input
                .saturating_add(cached.unwrap_or_default())
                .saturating_add(cache_write.unwrap_or_default())
        }),
        total: None,
    }
}
