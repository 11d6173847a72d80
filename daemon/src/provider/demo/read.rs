//! What the demo model takes from a request: the last input, and the calls it asked for since with their results.

use std::collections::HashMap;

use protocol::{Content, plain_text};
use serde_json::Value;

use crate::provider::{Message, ModelRequest, ReplyItem, ToolResult};

/// The conversation as far as the script looks at it.
pub(super) struct Conversation<'a> {
    /// Text of the last input.
    pub(super) input: &'a str,
    /// The calls of this turn that have a result, in order.
    pub(super) steps: Vec<Step<'a>>,
    /// Names of the tools there are.
    pub(super) tools: Vec<&'a str>,
    /// Whether a person watches.
    pub(super) watched: bool,
    /// Calls of the whole history, for ids nobody else has.
    pub(super) calls_so_far: usize,
    /// Bytes of everything sent.
    pub(super) bytes: u64,
}

/// A call and its result.
pub(super) struct Step<'a> {
    pub(super) tool: &'a str,
    pub(super) output: String,
    pub(super) worked: bool,
    argument: Option<&'a str>,
}

impl<'a> Conversation<'a> {
    /// Reads `request`.
    pub(super) fn of(request: &'a ModelRequest) -> Self {
        let messages = &request.messages;
        let last = messages
            .iter()
            .rposition(|message| matches!(message, Message::User { .. }));
        let input = last.and_then(|at| messages.get(at)).map_or("", last_text);
        let since = messages.get(last.map_or(0, |at| at + 1)..).unwrap_or_default();
        Self {
            input: input.trim(),
            steps: steps(since),
            tools: request.tools.iter().map(|tool| tool.name.as_str()).collect(),
            watched: request.interactive,
            calls_so_far: messages.iter().flat_map(calls).count(),
            bytes: bytes(request),
        }
    }

    /// The result of the turn's call of `tool`.
    pub(super) fn step(&self, tool: &str) -> Option<&Step<'a>> {
        self.steps.iter().find(|step| step.tool == tool)
    }
}

impl Step<'_> {
    /// What the call was about: its path or its command.
    pub(super) fn about(&self) -> &str {
        self.argument.unwrap_or_default()
    }
}

/// Inputs that wait for the same call come as one message; the last one is answered.
fn last_text(message: &Message) -> &str {
    let Message::User { content } = message else { return "" };
    let text = content.iter().rev().find_map(|piece| match piece {
        Content::Text { text } => Some(text.as_str()),
        Content::Image { .. } => None,
    });
    text.unwrap_or_default()
}

fn steps(messages: &[Message]) -> Vec<Step<'_>> {
    let results: HashMap<&str, &ToolResult> = messages
        .iter()
        .flat_map(|message| match message {
            Message::Results { results } => results.as_slice(),
            _ => &[],
        })
        .map(|result| (result.provider_call_id.as_str(), result))
        .collect();
    let answered = |call: &'_ super::ToolCall| results.get(call.provider_call_id.as_str()).copied();
    messages
        .iter()
        .flat_map(calls)
        .filter_map(|call| {
            let result = answered(call)?;
            let arguments = call.arguments.as_ref().ok();
            let argument = |name| arguments.and_then(|map| map.get(name)).and_then(Value::as_str);
            Some(Step {
                tool: &call.name,
                output: plain_text(&result.output),
                worked: !result.is_error,
                argument: argument("path").or_else(|| argument("command")),
            })
        })
        .collect()
}

fn calls(message: &Message) -> impl Iterator<Item = &super::ToolCall> {
    let items = match message {
        Message::Assistant { items, .. } => items.as_slice(),
        _ => &[],
    };
    items.iter().filter_map(|item| match item {
        ReplyItem::Call(call) => Some(call),
        _ => None,
    })
}

fn bytes(request: &ModelRequest) -> u64 {
    let tool =
        |tool: &crate::provider::ToolSpec| tool.name.len() + tool.description.len() + tool.schema.to_string().len();
    let total = request.system.len()
        + request.tools.iter().map(tool).sum::<usize>()
        + request.messages.iter().map(message_bytes).sum::<usize>();
    total as u64
}

fn message_bytes(message: &Message) -> usize {
    let pieces = |pieces: &[Content]| pieces.iter().map(content_bytes).sum::<usize>();
    match message {
        Message::User { content } => pieces(content),
        Message::Results { results } => results.iter().map(|result| pieces(&result.output)).sum(),
        Message::Assistant { items, .. } => super::said(items) as usize,
    }
}

fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text { text } => text.len(),
        Content::Image { data, .. } => data.len(),
    }
}
