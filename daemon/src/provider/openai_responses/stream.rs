//! Reads a Responses stream: items added, growing and done, then one event with the response's status and usage.
//!
//! The reply is built from the finished items; the terminal event's own copy is empty on some servers.

use protocol::Stop;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::items::{Items, PartKey, Voice};
use super::slot::Key;
use super::wire::{Event, Response};
use crate::provider::decoded::{Decoded, Decoder, InStreamError, Item, Progress, ReplyTooLarge, ReportedUsage};
use crate::provider::{Sink, lenient, sse};

/// The events that carry something of the reply.
const KINDS: [&str; 14] = [
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
];

/// The state of one stream.
#[derive(Debug, Default)]
pub(in crate::provider) struct Stream {
    decoded: Decoded,
    items: Items,
    /// The terminal event's status.
    ending: Option<Ending>,
}

/// What the terminal event said.
#[derive(Debug)]
struct Ending {
    status: String,
    incomplete: Option<String>,
}

impl Decoder for Stream {
    fn event(&mut self, event: &sse::Event, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let data = event.data();
        let data = data.trim();
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
            // A gateway's own failure carries no type.
            kind @ ("error" | "") if kind == "error" || parsed.error.is_some() => {
                self.decoded.error = Some(error_event(data));
                Ok(())
            }
            kind => self.take(kind, &parsed, sink),
        }
    }

    fn progress(&self) -> Progress {
        if self.decoded.complete {
            Progress::Ended
        } else if self.decoded.error.is_some() {
            Progress::Whole
        } else {
            Progress::Running
        }
    }

    fn finish(self: Box<Self>) -> Decoded {
        let mut decoded = self.decoded;
        (decoded.items, decoded.replay) = self.items.finish();
        if let Some(ending) = self.ending {
            decoded.stop = Some(stop(&ending, &decoded.items));
            decoded.stop_reason = match ending.status.as_str() {
                "" => None,
                "incomplete" => Some(format!("incomplete:{}", ending.incomplete.as_deref().unwrap_or("None"))),
                status => Some(status.to_owned()),
            };
        }
        decoded
    }
}

impl Stream {
    fn take(&mut self, kind: &str, event: &Event<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let content = PartKey::Content(event.content_index.0);
        match kind {
            "response.output_text.delta" => {
                self.items
                    .say(key(event, None), Voice::Text, content, event.delta.as_str(), sink)
            }
            "response.refusal.delta" => {
                self.items
                    .say(key(event, None), Voice::Refusal, content, event.delta.as_str(), sink)
            }
            "response.reasoning_text.delta" => {
                self.items
                    .say(key(event, None), Voice::Reasoning, content, event.delta.as_str(), sink)
            }
            "response.reasoning_summary_text.delta" => {
                let part = PartKey::Summary(event.summary_index.0);
                self.items
                    .say(key(event, None), Voice::Reasoning, part, event.delta.as_str(), sink)
            }
            "response.output_text.done" => self.said(event, Voice::Text, event.text.as_str(), sink),
            "response.refusal.done" => self.said(event, Voice::Refusal, event.refusal.as_str(), sink),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.items.argue(&key(event, None), event.delta.as_str(), sink)
            }
            "response.function_call_arguments.done" => {
                self.items.argued(&key(event, None), event.arguments.as_str(), sink)
            }
            "response.custom_tool_call_input.done" => self.items.argued(&key(event, None), event.input.as_str(), sink),
            "response.output_item.added" => {
                if let Some(item) = self.whole_item(event.item) {
                    self.items.added(key(event, Some(&item)), item, sink);
                }
                Ok(())
            }
            "response.output_item.done" => match self.whole_item(event.item) {
                Some(item) => self.items.done(key(event, Some(&item)), item, sink),
                None => Ok(()),
            },
            "response.created" | "response.in_progress" | "response.queued" => self.response(event, Part::Begins, sink),
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.response(event, Part::Ends, sink)
            }
            _ => Ok(()),
        }
    }

    /// Takes the whole text of a part: it is only news where none was streamed.
    fn said(&mut self, event: &Event<'_>, voice: Voice, text: &str, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let (key, part) = (key(event, None), PartKey::Content(event.content_index.0));
        if text.is_empty() || self.items.has_said(&key, voice, part) {
            return Ok(());
        }
        self.items.say(key, voice, part, text, sink)
    }

    fn whole_item(&mut self, raw: Option<&RawValue>) -> Option<Map<String, Value>> {
        let item = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        self.decoded.damaged |= item.is_none();
        item
    }

    fn response(&mut self, event: &Event<'_>, part: Part, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let raw = event.response.map_or("{}", RawValue::get);
        let response = serde_json::from_str::<Response<'_>>(raw).unwrap_or_default();
        if let Some(id) = response.id.to_filled() {
            self.decoded.id = Some(id);
        }
        if let Some(model) = response.model.to_filled() {
            self.decoded.model = Some(model);
        }
        match part {
            Part::Begins => Ok(()),
            Part::Ends => self.end(&response, sink),
        }
    }

    fn end(&mut self, response: &Response<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        self.decoded.complete = true;
        self.decoded.usage = reported(response.usage.as_ref());
        let status = response.status.as_str().to_owned();
        if status == "failed" && self.decoded.error.is_none() {
            let error = response.error.clone().unwrap_or_default();
            self.decoded.error = Some(InStreamError::from_value(&error));
        }
        let reason = response
            .incomplete_details
            .as_ref()
            .and_then(|details| details.get("reason")?.as_str());
        self.ending = Some(Ending {
            status,
            incomplete: reason.map(str::to_owned),
        });
        if !self.items.is_empty() {
            return Ok(());
        }
        // A server that streams nothing says everything here.
        for (index, raw) in (0_u64..).zip(response.output.iter().flatten()) {
            if let Ok(item) = serde_json::from_str(raw.get()) {
                self.items.done(Key::Index(index), item, sink)?;
            }
        }
        Ok(())
    }
}

/// Which of the events with a whole response it is.
#[derive(Clone, Copy)]
enum Part {
    Begins,
    Ends,
}

/// Index before id: one gateway changes an item's id between its events.
fn key(event: &Event<'_>, item: Option<&Map<String, Value>>) -> Key {
    if let Some(index) = event.output_index.0 {
        return Key::Index(index);
    }
    let own = item.and_then(|item| item.get("id")?.as_str());
    Key::Id(own.unwrap_or_else(|| event.item_id.as_str()).to_owned())
}

/// `{type: "error", error: {…}}`, or the older form with code and message beside the type.
fn error_event(data: &str) -> InStreamError {
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    match event.get("error").filter(|error| !error.is_null()) {
        Some(error) => InStreamError::from_value(error),
        None => InStreamError::from_value(&event),
    }
}

fn stop(ending: &Ending, items: &[Item]) -> Stop {
    match (ending.status.as_str(), ending.incomplete.as_deref()) {
        ("completed", _) if items.iter().any(|item| matches!(item, Item::Call(_))) => Stop::ToolUse,
        ("completed", _)
            if items
                .iter()
                .any(|item| matches!(item, Item::Refusal { text } if !text.is_empty())) =>
        {
            Stop::Refusal
        }
        ("completed", _) => Stop::EndTurn,
        ("incomplete", Some("max_output_tokens")) => Stop::MaxTokens,
        ("incomplete", Some("content_filter")) => Stop::ContentFilter,
        _ => Stop::Other,
    }
}

/// Input includes what was cached.
fn reported(usage: Option<&Value>) -> ReportedUsage {
    let figure = |path: &str| usage.and_then(|usage| usage.pointer(path)).and_then(Value::as_u64);
    let input = figure("/input_tokens");
    ReportedUsage {
        input,
        output: figure("/output_tokens"),
        cached: figure("/input_tokens_details/cached_tokens"),
        cache_write: figure("/input_tokens_details/cache_write_tokens"),
        reasoning: figure("/output_tokens_details/reasoning_tokens"),
        input_total: input,
        total: figure("/total_tokens"),
    }
}
