//! Reads a Chat Completions stream: chunks until `[DONE]`, or until a finish reason and the end of the body.

use std::borrow::Cow;

use protocol::Stop;
use serde_json::{Value, json};

use super::reasoning::{self, Field};
use super::usage::{is_said, reported};
use super::wire::{Choice, Chunk, Content, Delta, Function, ToolCall, argument_text, parts_of};
use crate::provider::decoded::{
    Budget, Call, CallEnd, CallForm, Decoded, Decoder, InStreamError, Item, Part, Progress, ReplyTooLarge,
};
use crate::provider::{ItemKind, Sink, lenient, sse};

/// The state of one stream.
#[derive(Debug, Default)]
pub(in crate::provider) struct Stream {
    decoded: Decoded,
    /// In order of appearance; a place is an item's number.
    items: Vec<Open>,
    /// The raw `reasoning_details` deltas.
    details: Vec<Value>,
    field: Option<Field>,
    /// The latest call of each index, and the latest of all under `None`.
    current: Vec<(Option<u64>, usize)>,
    done: Done,
    budget: Budget,
}

/// Whether `[DONE]` came.
#[derive(Debug, Default, PartialEq, Eq)]
enum Done {
    #[default]
    No,
    Yes,
}

/// An item while it grows.
#[derive(Debug)]
enum Open {
    Text(String),
    Reasoning(String),
    Refusal(String),
    Call {
        id: Option<String>,
        name: String,
        arguments: String,
        /// What goes back with the call as it came.
        extra: Option<Value>,
    },
}

impl Open {
    fn text(&mut self) -> &mut String {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::Refusal(text) => text,
            Self::Call { arguments, .. } => arguments,
        }
    }
}

/// The three kinds of running text; a reply has at most one item of each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Text,
    Reasoning,
    Refusal,
}

impl Decoder for Stream {
    fn event(&mut self, event: &sse::Event, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let data = event.data();
        let data = data.trim();
        if data == "[DONE]" {
            self.done = Done::Yes;
            return Ok(());
        }
        let mut mended = None;
        let Some(chunk) = lenient::parse::<Chunk<'_>>(data, &mut mended) else {
            self.decoded.damaged |= lenient::loses(data, &[]);
            return Ok(());
        };
        // vLLM's own failures are the error itself, without a field of that name.
        let is_error = event.name() == "error" || (chunk.object.as_str() == "error" && chunk.choices.is_none());
        if is_error && chunk.error.is_none() {
            self.decoded.error = serde_json::from_str(data).ok().as_ref().map(InStreamError::from_value);
        }
        self.chunk(&chunk, sink)
    }

    fn progress(&self) -> Progress {
        if self.done == Done::Yes {
            Progress::Ended
        } else if self.decoded.stop_reason.is_some() || self.decoded.error.is_some() {
            Progress::Whole
        } else {
            Progress::Running
        }
    }

    fn finish(self: Box<Self>) -> Decoded {
        let mut decoded = self.decoded;
        let done = self.done == Done::Yes;
        decoded.complete = done || decoded.stop_reason.is_some();
        decoded.stop = match decoded.stop_reason.as_deref() {
            Some(reason) => Some(stop(reason)),
            None => done.then_some(Stop::EndTurn),
        };
        // Several servers say "stop" beside calls: the calls count.
        if decoded.stop == Some(Stop::EndTurn) && self.items.iter().any(|item| matches!(item, Open::Call { .. })) {
            decoded.stop = Some(Stop::ToolUse);
        }
        let private = self.field.map(|field| reasoning::private(field, &self.details));
        let items = self.items.into_iter().enumerate();
        decoded.items = items.map(|(order, open)| item(open, order, private.as_ref())).collect();
        decoded.replay = self.details;
        decoded
    }
}

impl Stream {
    fn chunk(&mut self, chunk: &Chunk<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        if let Some(error) = chunk.error.as_ref().filter(|error| is_said(error)) {
            self.decoded.error = Some(InStreamError::from_value(error));
        }
        if self.decoded.id.is_none() {
            self.decoded.id = chunk.id.to_filled();
        }
        if self.decoded.model.is_none() {
            self.decoded.model = chunk.model.to_filled();
        }
        let usage = chunk.usage.as_ref().filter(|usage| is_said(usage));
        if let Some(usage) = usage.or_else(|| chunk.x_groq.as_ref()?.get("usage").filter(|usage| is_said(usage))) {
            self.decoded.usage = reported(usage);
        }
        for choice in chunk.choices.iter().flatten() {
            // One choice is asked for.
            if choice.index.0.unwrap_or_default() == 0 {
                self.choice(choice, sink)?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Choice<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        if let Some(reason) = choice.finish_reason.to_filled() {
            self.decoded.stop_reason = Some(reason);
        }
        if let Some(error) = choice.error.as_ref().filter(|error| is_said(error)) {
            self.decoded
                .error
                .get_or_insert_with(|| InStreamError::from_value(error));
        }
        // A whole message counts only where nothing is streamed: some servers send both.
        let message = choice.message.as_ref().filter(|_| self.items.is_empty());
        let delta = choice.delta.as_ref().filter(|delta| delta.says_something());
        match delta.or(message) {
            Some(delta) => self.delta(delta, sink),
            None => Ok(()),
        }
    }

    fn delta(&mut self, delta: &Delta<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        if let Some(refusal) = delta.refusal.filled() {
            self.say(Voice::Refusal, refusal, sink)?;
        }
        let (text, thinking) = match &delta.content {
            Content::Text(text) => (text.filled().map(Cow::Borrowed), None),
            Content::Json(parts) => parts_of(parts),
        };
        self.reason(delta, thinking.as_deref(), sink)?;
        if let Some(text) = text {
            self.say(Voice::Text, &text, sink)?;
        }
        for call in delta.tool_calls.iter().flatten() {
            self.call(call, sink)?;
        }
        match &delta.function_call {
            Some(function) => self.call_part(Some(0), None, function, sink).map(drop),
            None => Ok(()),
        }
    }

    /// Takes the reasoning of one delta from one field only: servers that fill two say the same in both.
    fn reason(&mut self, delta: &Delta<'_>, thinking: Option<&str>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let details = delta
            .reasoning_details
            .as_ref()
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let from_details;
        let (field, text) = if let Some(text) = delta.reasoning_content.filled() {
            (Field::ReasoningContent, text)
        } else if let Some(text) = delta.reasoning.filled() {
            (Field::Reasoning, text)
        } else if let Some(text) = thinking.filter(|text| !text.is_empty()) {
            (Field::Thinking, text)
        } else if !details.is_empty() {
            from_details = reasoning::text_of(details);
            (Field::Details, from_details.as_str())
        } else {
            return Ok(());
        };
        if self.field.is_none_or(|known| known == Field::Details) {
            self.field = Some(field);
        }
        for detail in details {
            self.budget.spend(detail.to_string().len())?;
            self.details.push(detail.clone());
        }
        self.say(Voice::Reasoning, text, sink)
    }

    /// Adds `text` to the reply's item of `voice`, which appears with its first word.
    fn say(&mut self, voice: Voice, text: &str, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        self.budget.spend(text.len())?;
        let place = match self.items.iter().position(|item| speaks(item) == Some(voice)) {
            Some(place) => place,
            None => {
                let (item, kind) = match voice {
                    Voice::Text => (Open::Text(String::new()), ItemKind::Text),
                    Voice::Reasoning => (Open::Reasoning(String::new()), ItemKind::Reasoning),
                    Voice::Refusal => (Open::Refusal(String::new()), ItemKind::Refusal),
                };
                self.open(item, kind, sink)
            }
        };
        self.push(place, text, sink);
        Ok(())
    }

    fn call(&mut self, call: &ToolCall<'_>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let none = Function::default();
        let function = call.function.as_ref().unwrap_or(&none);
        let place = self.call_part(call.index.0, call.id.filled(), function, sink)?;
        if let (Some(came), Some(Open::Call { extra, .. })) = (&call.extra_content, self.items.get_mut(place)) {
            self.budget.spend(came.to_string().len())?;
            *extra = Some(came.clone());
        }
        Ok(())
    }

    /// Adds to the call of `index`, or to the latest where servers send no index, and says which item it is. Another id is another
    /// call; the same id and name may come again in every part.
    fn call_part(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
        function: &Function<'_>,
        sink: &mut dyn Sink,
    ) -> Result<usize, ReplyTooLarge> {
        let name = function.name.filled();
        let known = self
            .current
            .iter()
            .find(|(key, _)| *key == index)
            .map(|(_, place)| *place);
        let place = match known.filter(|place| self.same_call(*place, index, id)) {
            Some(place) => {
                self.complete_head(place, id, name);
                place
            }
            None => self.open_call(index, id, name, sink),
        };
        let arguments = function
            .arguments
            .map(|raw| argument_text(raw.get()))
            .unwrap_or_default();
        self.budget
            .spend(arguments.len() + id.map_or(0, str::len) + name.map_or(0, str::len))?;
        self.push(place, &arguments, sink);
        Ok(place)
    }

    fn same_call(&self, place: usize, index: Option<u64>, id: Option<&str>) -> bool {
        let Some(Open::Call { id: known, .. }) = self.items.get(place) else {
            return false;
        };
        match (id, known.as_deref()) {
            (None, _) => true,
            (Some(id), Some(known)) => id == known,
            (Some(_), None) => index.is_some(),
        }
    }

    fn open_call(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>, sink: &mut dyn Sink) -> usize {
        let (id, name) = (id.map(str::to_owned), name.unwrap_or_default().to_owned());
        let kind = ItemKind::Call {
            name: name.clone(),
            provider_call_id: id.clone().unwrap_or_default(),
        };
        let place = self.open(
            Open::Call {
                id,
                name,
                arguments: String::new(),
                extra: None,
            },
            kind,
            sink,
        );
        self.current.retain(|(key, _)| *key != index && key.is_some());
        self.current.push((index, place));
        if index.is_some() {
            self.current.push((None, place));
        }
        place
    }

    /// Fills in an id or a name that comes after the first part.
    fn complete_head(&mut self, place: usize, id: Option<&str>, name: Option<&str>) {
        if let Some(Open::Call {
            id: known, name: named, ..
        }) = self.items.get_mut(place)
        {
            if known.is_none() {
                *known = id.map(str::to_owned);
            }
            if named.is_empty() {
                *named = name.unwrap_or_default().to_owned();
            }
        }
    }

    fn open(&mut self, item: Open, kind: ItemKind, sink: &mut dyn Sink) -> usize {
        let place = self.items.len();
        sink.open(place, kind);
        self.items.push(item);
        place
    }

    fn push(&mut self, place: usize, text: &str, sink: &mut dyn Sink) {
        if let Some(item) = self.items.get_mut(place).filter(|_| !text.is_empty()) {
            item.text().push_str(text);
            sink.push(place, text);
        }
    }
}

fn speaks(item: &Open) -> Option<Voice> {
    match item {
        Open::Text(_) => Some(Voice::Text),
        Open::Reasoning(_) => Some(Voice::Reasoning),
        Open::Refusal(_) => Some(Voice::Refusal),
        Open::Call { .. } => None,
    }
}

fn item(open: Open, order: usize, private: Option<&Value>) -> Item {
    match open {
        Open::Text(text) => Item::Text {
            parts: vec![Part { order, text }],
            private: None,
        },
        Open::Reasoning(text) => Item::Reasoning {
            parts: vec![Part { order, text }],
            private: private.cloned(),
        },
        Open::Refusal(text) => Item::Refusal { text },
        // This wire closes no call: the end of the reply closes them all.
        Open::Call {
            id,
            name,
            arguments,
            extra,
        } => Item::Call(Call {
            id,
            name,
            arguments,
            form: CallForm::Function,
            end: CallEnd::Closed,
            item_id: None,
            private: extra.map(|extra| json!({ "extra_content": extra })),
        }),
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "stop" | "end_turn" | "eos" => Stop::EndTurn,
        "tool_calls" | "function_call" => Stop::ToolUse,
        "length" | "model_length" => Stop::MaxTokens,
        "content_filter" => Stop::ContentFilter,
        _ => Stop::Other,
    }
}
