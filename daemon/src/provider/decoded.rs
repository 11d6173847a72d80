//! What a stream said: the neutral form every adapter's decoder ends in, and how it becomes a reply or a failure.
//!
//! `Decoded` keeps what the provider reported as it reported it; `Decoded::into_reply` applies the rules that are the same
//! for all wires: a stream without its terminal marker is cut, a call that was not closed or does not parse never runs,
//! and a refused reply takes nothing of itself back into the history.

use protocol::{Stop, Usage};
use serde_json::{Map, Value};

use super::error::{Class, ModelError};
use super::{BadArguments, ItemKind, ModelReply, ReplyItem, Sink, ToolCall, classify, sse};

/// Most bytes of text, arguments and private parts of one reply: what an open item may hold in memory.
pub(super) const REPLY_LIMIT: usize = 4 * 1024 * 1024;

/// A stateful reader of one stream.
pub trait Decoder: Send {
    /// Takes the next event and tells the sink what it says.
    ///
    /// # Errors
    /// When the reply grows past `REPLY_LIMIT`.
    fn event(&mut self, event: &sse::Event, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge>;

    /// How far the reply is.
    fn progress(&self) -> Progress;

    /// The end of the body.
    fn finish(self: Box<Self>) -> Decoded;
}

/// How far a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A body that ends now is cut.
    Running,
    /// A body may end now; figures may still follow.
    Whole,
    /// Nothing of the reply can follow.
    Ended,
}

/// The reply grew past `REPLY_LIMIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reply is larger than {REPLY_LIMIT} bytes")]
pub struct ReplyTooLarge;

/// A decoded stream.
#[derive(Debug, Default)]
pub struct Decoded {
    pub id: Option<String>,
    pub model: Option<String>,
    /// In order of appearance, as the sink was told.
    pub items: Vec<Item>,
    /// The provider's own word.
    pub stop_reason: Option<String>,
    /// What it means; `None` when the provider did not say.
    pub stop: Option<Stop>,
    /// Why the model refused, where the provider says so outside the reply.
    pub refusal_reason: Option<String>,
    pub usage: ReportedUsage,
    /// The error event of the stream.
    pub error: Option<InStreamError>,
    /// Whether a terminal marker came.
    pub complete: bool,
    /// Whether an event could not be read, so that a part of the reply may be missing.
    pub damaged: bool,
    /// What must go back to the provider on the next turn, as it was received.
    pub replay: Vec<Value>,
}

/// One item of a decoded reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Text {
        parts: Vec<Part>,
        private: Option<Value>,
    },
    Reasoning {
        parts: Vec<Part>,
        private: Option<Value>,
    },
    Refusal {
        text: String,
    },
    Call(Call),
    /// The provider's own tool.
    ServerCall {
        kind: String,
        id: Option<String>,
        name: Option<String>,
        /// `None` where the wire has none.
        arguments: Option<Value>,
        raw: Value,
    },
    Opaque {
        raw: Value,
    },
}

/// A run of text with its place among all parts of the reply, in order of appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    pub order: usize,
    pub text: String,
}

/// A tool call as streamed.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: Option<String>,
    pub name: String,
    /// The joined argument text.
    pub arguments: String,
    pub form: CallForm,
    pub end: CallEnd,
    /// The item's own id, where a wire has one beside the call's.
    pub item_id: Option<String>,
    pub private: Option<Value>,
}

/// How a call's arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallForm {
    /// One JSON object.
    Function,
    /// Free text.
    Custom,
}

/// Whether the provider closed the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    Open,
    Closed,
}

/// Token counts as reported; `None` is "not reported".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedUsage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cached: Option<u64>,
    pub cache_write: Option<u64>,
    pub reasoning: Option<u64>,
    /// `input` with everything that was cached.
    pub input_total: Option<u64>,
    /// Sum of everything, where the wire has it.
    pub total: Option<u64>,
}

/// An error the provider sent inside the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct InStreamError {
    pub kind: Option<String>,
    pub message: Option<String>,
    /// An integer or a string.
    pub code: Option<Value>,
    /// The HTTP status the provider names, if it does.
    pub status: Option<u16>,
    /// All it said.
    pub raw: Value,
}

impl InStreamError {
    /// Reads `{type, message, code}` or a bare string.
    pub(super) fn from_value(error: &Value) -> Self {
        let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            kind: text("type"),
            message: error.as_str().map(str::to_owned).or_else(|| text("message")),
            code: error.get("code").filter(|code| !code.is_null()).cloned(),
            status: classify::status_of(error),
            raw: error.clone(),
        }
    }

    /// Puts `clean` between what was said and whoever reads it.
    pub(super) fn clean(&mut self, clean: &dyn Fn(&str) -> String) {
        self.message = self.message.as_deref().map(clean);
        clean_texts(&mut self.raw, clean);
    }
}

/// The JSON parser bounds how deep values are.
fn clean_texts(value: &mut Value, clean: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = clean(text),
        Value::Array(list) => list.iter_mut().for_each(|value| clean_texts(value, clean)),
        Value::Object(map) => map.values_mut().for_each(|value| clean_texts(value, clean)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl ReportedUsage {
    /// The comparable form; `None` when nothing was reported.
    pub fn normal(&self) -> Option<Usage> {
        if self.input_total.is_none() && self.output.is_none() {
            return None;
        }
        let input = self.input_total.unwrap_or_default();
        let output = self.output.unwrap_or_default();
        let reasoning = self.reasoning.unwrap_or_default();
        // Some servers leave reasoning out of the output count; their own sum shows it.
        let apart = reasoning > 0 && self.total == Some(input.saturating_add(output).saturating_add(reasoning));
        Some(Usage {
            input,
            output: if apart {
                output.saturating_add(reasoning)
            } else {
                output
            },
            cached: self.cached.unwrap_or_default(),
            cache_write: self.cache_write.unwrap_or_default(),
            reasoning,
        })
    }
}

impl Decoded {
    /// The reply, or why there is none. Items the rules add are told to the sink.
    ///
    /// # Errors
    /// The provider's in-stream error, or `Class::StreamCut` when the terminal marker or a part of the reply is missing.
    pub fn into_reply(self, sink: &mut dyn Sink) -> Result<ModelReply, ModelError> {
        let usage = self.usage.normal();
        if let Some(failure) = self.failure() {
            return Err(ModelError { usage, ..failure });
        }
        let stop = self.stop.unwrap_or(Stop::Other);
        let mut items = Vec::with_capacity(self.items.len() + 1);
        let last = self.items.len().saturating_sub(1);
        for (position, item) in self.items.into_iter().enumerate() {
            let place = if position == last { Place::Last } else { Place::Earlier };
            items.push(reply_item(item, position, stop, place));
        }
        if stop == Stop::Refusal {
            items = refused(items, self.refusal_reason, sink);
        }
        Ok(ModelReply {
            items,
            stop,
            usage,
            model: self.model,
            response_id: self.id,
        })
    }

    fn failure(&self) -> Option<ModelError> {
        if let Some(error) = &self.error {
            return Some(classify::in_stream(error));
        }
        if self.stop_reason.as_deref() == Some("error") {
            return Some(ModelError::new(
                Class::Server,
                "the provider ended the reply with an error it does not name",
            ));
        }
        if self.damaged {
            return Some(ModelError::new(
                Class::StreamCut,
                "the provider sent an event that cannot be read",
            ));
        }
        if self.complete {
            return None;
        }
        let message = if self.items.is_empty() && self.id.is_none() {
            "the provider closed the connection without a reply"
        } else {
            "the reply was cut off before its end"
        };
        Some(ModelError::new(Class::StreamCut, message))
    }
}

/// Where an item stands: only the last one can have been cut by a limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Earlier,
    Last,
}

fn reply_item(item: Item, position: usize, stop: Stop, place: Place) -> ReplyItem {
    match item {
        Item::Text { parts, private } => ReplyItem::Text {
            text: joined(parts, ""),
            private,
        },
        Item::Reasoning { parts, private } => ReplyItem::Reasoning {
            text: joined(parts, PARAGRAPH),
            private,
        },
        Item::Refusal { text } => ReplyItem::Refusal { text },
        Item::ServerCall { raw, .. } | Item::Opaque { raw } => ReplyItem::Opaque { private: raw },
        Item::Call(call) => ReplyItem::Call(tool_call(call, position, stop, place)),
    }
}

/// What stands between two parts of one reasoning item, in the sink and in the reply.
pub(super) const PARAGRAPH: &str = "\n\n";

fn joined(parts: Vec<Part>, between: &str) -> String {
    let mut texts = parts.into_iter().map(|part| part.text).filter(|text| !text.is_empty());
    let mut out = texts.next().unwrap_or_default();
    for text in texts {
        out.push_str(between);
        out.push_str(&text);
    }
    out
}

/// The call as the turn loop sees it. A call without an id gets one that is unique in its reply.
fn tool_call(call: Call, position: usize, stop: Stop, place: Place) -> ToolCall {
    let limited = matches!(stop, Stop::MaxTokens | Stop::ContentFilter | Stop::ContextWindow);
    let arguments = match (call.end, call.form) {
        (CallEnd::Open, _) => Err(bad(
            &call.arguments,
            "the reply ended before the arguments were complete",
        )),
        (CallEnd::Closed, CallForm::Custom) => Ok(Map::from_iter([(
            "input".to_owned(),
            Value::String(call.arguments.clone()),
        )])),
        // A limit may have struck before the first fragment: no text is then no arguments at all, not an empty object.
        (CallEnd::Closed, CallForm::Function)
            if limited && place == Place::Last && call.arguments.trim().is_empty() =>
        {
            Err(bad(&call.arguments, "the reply was cut off before the arguments"))
        }
        (CallEnd::Closed, CallForm::Function) => object(&call.arguments),
    };
    ToolCall {
        provider_call_id: call.id.unwrap_or_else(|| format!("call_{position}")),
        name: call.name,
        arguments,
        private: call.private,
    }
}

fn object(raw: &str) -> Result<Map<String, Value>, BadArguments> {
    if raw.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(raw) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(bad(raw, "the arguments are not a JSON object")),
        Err(error) => Err(bad(raw, &format!("the arguments are not valid JSON: {error}"))),
    }
}

fn bad(raw: &str, message: &str) -> BadArguments {
    BadArguments {
        raw: raw.to_owned(),
        message: message.to_owned(),
    }
}

/// A refused reply: what was said stays visible as a refusal, nothing of it runs or goes back to the provider.
fn refused(items: Vec<ReplyItem>, reason: Option<String>, sink: &mut dyn Sink) -> Vec<ReplyItem> {
    let mut items: Vec<ReplyItem> = items
        .into_iter()
        .map(|item| match item {
            ReplyItem::Text { text, .. } | ReplyItem::Refusal { text } => ReplyItem::Refusal { text },
            ReplyItem::Reasoning { text, .. } => ReplyItem::Reasoning { text, private: None },
            ReplyItem::Opaque { .. } | ReplyItem::Call(_) => ReplyItem::Opaque { private: Value::Null },
        })
        .collect();
    let said = items
        .iter()
        .any(|item| matches!(item, ReplyItem::Refusal { text } if !text.is_empty()));
    let text = match reason {
        Some(reason) => reason,
        None if said => return items,
        None => "The model declined to answer.".to_owned(),
    };
    sink.open(items.len(), ItemKind::Refusal);
    sink.push(items.len(), &text);
    items.push(ReplyItem::Refusal { text });
    items
}

/// What is left of `REPLY_LIMIT`.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(REPLY_LIMIT)
    }
}

impl Budget {
    /// Takes `bytes` of the limit.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), ReplyTooLarge> {
        self.0 = self.0.checked_sub(bytes).ok_or(ReplyTooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_counted_apart_from_the_output_is_added_to_it() {
        let reported = ReportedUsage {
            input: Some(10),
            input_total: Some(10),
            output: Some(5),
            reasoning: Some(7),
            total: Some(22),
            ..ReportedUsage::default()
        };
        assert_eq!(reported.normal().map(|usage| usage.output), Some(12));
        assert_eq!(
            ReportedUsage {
                total: Some(15),
                ..reported
            }
            .normal()
            .map(|usage| usage.output),
            Some(5)
        );
        assert_eq!(ReportedUsage::default().normal(), None);
    }

    #[test]
    fn only_a_whole_json_object_runs() {
        assert_eq!(object(" ").map(|map| map.len()), Ok(0));
        assert!(object("{\"a\":1}").is_ok_and(|map| map.len() == 1));
        for raw in ["{\"a\":", "[1]", "\"text\"", "{} {}"] {
            assert!(object(raw).is_err(), "{raw}");
        }
    }
}
