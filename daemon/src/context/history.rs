//! The history as the model sees it, grown event by event from the log. Calls and results are never apart: a step's results follow
//! the reply that asked for them, in the order it asked.

use crate::provider::{BadArguments, Message, Origin, ReplyItem, ToolCall, ToolResult};
use protocol::event::{Event, ItemCompleted, ItemStatus, ItemType, ToolCompleted, ToolOutcome, ToolRequested};
use protocol::{CallId, Content, InputId, Seq, Stop};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is said to the model where a reply was cut by a person or a deadline.
const CUT_NOTE: &str = "[The reply was interrupted here.]";

/// Messages up to an event.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The last event taken in.
    pub(crate) through: Seq,
    pub(crate) messages: Vec<Message>,
    inputs: BTreeMap<InputId, Vec<Content>>,
    /// Pieces of the reply whose step is not complete yet.
    reply: Vec<ReplyItem>,
    cut: bool,
    /// Calls without a result yet, with their place and the provider's id.
    calls: BTreeMap<CallId, (u32, String)>,
    results: Vec<(u32, ToolResult)>,
    /// What happened beside the turn since the last model call.
    notes: Vec<String>,
}

impl History {
    /// Takes in the event at `seq`.
    pub(crate) fn take(&mut self, seq: Seq, event: Event, private: Option<Value>) {
        self.through = seq;
        match event {
            Event::InputAccepted(accepted) => {
                self.inputs.insert(accepted.input_id, accepted.content);
            }
            Event::InputDelivered(delivered) => {
                self.flush_results();
                self.flush_notes();
                let content = self.inputs.remove(&delivered.input_id).unwrap_or_default();
                self.user(content);
            }
            Event::InputSettled(settled) => {
                self.inputs.remove(&settled.input_id);
            }
            Event::StepStarted(_) => {
                self.flush_results();
                self.flush_notes();
                self.reply.clear();
            }
            Event::ItemCompleted(item) => self.item(item, private),
            Event::ToolRequested(requested) => self.call(requested, private),
            Event::StepCompleted(completed) => {
                let items = std::mem::take(&mut self.reply);
                if completed.stop != Stop::Refusal || items.iter().any(|item| matches!(item, ReplyItem::Call(_))) {
                    self.assistant(Origin(completed.model.origin), items);
                }
            }
            Event::ToolCompleted(completed) => self.result(completed),
            Event::JobEnded(ended) => {
                let how = protocol::wording::tool_outcome(ended.outcome);
                self.notes.push(format!(
                    "[Job {} is over: {how}. job_output shows what it printed.]",
                    ended.job
                ));
            }
            Event::TurnCompleted(_) => {
                self.flush_results();
                self.flush_cut();
            }
            _ => {}
        }
    }

    fn user(&mut self, content: Vec<Content>) {
        match self.messages.last_mut() {
            Some(Message::User { content: before }) => before.extend(content),
            _ => self.messages.push(Message::User { content }),
        }
    }

    /// Notes come with the next model call, never between calls and their results.
    fn flush_notes(&mut self) {
        let notes: Vec<Content> = self.notes.drain(..).map(Content::text).collect();
        if !notes.is_empty() {
            self.user(notes);
        }
    }

    fn assistant(&mut self, origin: Origin, items: Vec<ReplyItem>) {
        if !items.is_empty() {
            self.messages.push(Message::Assistant { origin, items });
        }
    }

    fn item(&mut self, item: ItemCompleted, private: Option<Value>) {
        let cut = item.status == ItemStatus::Interrupted;
        self.cut |= cut;
        let text = item.text;
        self.reply.push(match item.item_type {
            // Reasoning that was cut has no signature, and no provider takes it back.
            ItemType::Reasoning | ItemType::Opaque if cut => return,
            ItemType::Text => ReplyItem::Text { text, private },
            ItemType::Reasoning => ReplyItem::Reasoning { text, private },
            ItemType::Refusal => ReplyItem::Refusal { text },
            ItemType::Opaque => ReplyItem::Opaque {
                private: private.unwrap_or(Value::Null),
            },
        });
    }

    fn call(&mut self, requested: ToolRequested, private: Option<Value>) {
        let arguments = match requested.arguments {
            Value::Object(arguments) => Ok(arguments),
            other => Err(BadArguments {
                raw: other.as_str().unwrap_or_default().to_owned(),
                message: requested.argument_error.unwrap_or_default(),
            }),
        };
        self.calls
            .insert(requested.call, (requested.index, requested.provider_call_id.clone()));
        let (provider_call_id, name) = (requested.provider_call_id, requested.tool);
        self.reply.push(ReplyItem::Call(ToolCall {
            provider_call_id,
            name,
            arguments,
            private,
        }));
    }

    fn result(&mut self, completed: ToolCompleted) {
        let Some((index, provider_call_id)) = self.calls.remove(&completed.call) else {
            return;
        };
        let mut output = vec![Content::text(completed.output)];
        output.extend(completed.images);
        let is_error = completed.outcome != ToolOutcome::Ok;
        self.results.push((
            index,
            ToolResult {
                provider_call_id,
                output,
                is_error,
            },
        ));
    }

    fn flush_results(&mut self) {
        if self.results.is_empty() {
            return;
        }
        self.results.sort_by_key(|(index, _)| *index);
        let results = self.results.drain(..).map(|(_, result)| result).collect();
        self.messages.push(Message::Results { results });
    }

    /// A reply that was cut goes to the model as text, with a note; it belongs to no provider.
    fn flush_cut(&mut self) {
        let mut items = std::mem::take(&mut self.reply);
        if std::mem::take(&mut self.cut) && !items.is_empty() {
            items.push(ReplyItem::Text {
                text: CUT_NOTE.to_owned(),
                private: None,
            });
            self.assistant(Origin(String::new()), items);
        }
    }
}
