//! The demo model: built in, no network, a script instead of a mind. It lets a person try the daemon before there is a
//! key, and tests drive the real loop with it.
//!
//! It reads the request it is sent and the results in it, asks for real tool calls, and quotes what they really returned.
//! Everything it says is labelled: it never passes for a model.

mod read;
mod script;

use std::time::Duration;

use async_trait::async_trait;
use protocol::{Stop, Usage};
use serde_json::Value;

use self::read::Conversation;
use self::script::{Line, script};
use super::{Class, ItemKind, ModelError, ModelReply, ModelRequest, Origin, Provider, ReplyItem, Sink, ToolCall};

/// Time between two words when a person watches: about as fast as a quick model writes.
const PACE: Duration = Duration::from_millis(20);

/// Pieces pushed before other tasks get their turn when nobody watches; a cancelled reply ends there.
const BURST_PIECES: usize = 64;

/// Bytes that count as one token, the daemon's own estimate for unknown models.
const TOKEN_BYTES: u64 = 4;

/// The demo model.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Demo;

/// Whether words come at a readable pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Readable,
    AtOnce,
}

#[async_trait]
impl Provider for Demo {
    fn origin(&self) -> Origin {
        Origin("demo".to_owned())
    }

    async fn call(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<ModelReply, ModelError> {
        let conversation = Conversation::of(request);
        let (text, call) = match script(&conversation) {
            Line::Say(text) => (text, None),
            Line::Call(text, call) => (text, Some(call)),
            Line::Fail => {
                let error = ModelError::new(Class::BadRequest, "the demo model failed, as it was asked to");
                return Err(error.with_hint("send anything but `fail`"));
            }
        };
        let pace = if request.interactive {
            Pace::Readable
        } else {
            Pace::AtOnce
        };
        let (text, whole) = cut(text, request.max_output_tokens);
        speak(&text, pace, sink).await;
        let mut items = vec![ReplyItem::Text { text, private: None }];
        let call = call.filter(|_| whole);
        let stop = match (&call, whole) {
            (_, false) => Stop::MaxTokens,
            (Some(_), true) => Stop::ToolUse,
            (None, true) => Stop::EndTurn,
        };
        items.extend(call.map(|call| ask(call, conversation.calls_so_far, items.len(), sink)));
        let usage = Usage {
            input: tokens(conversation.bytes),
            output: tokens(said(&items)),
            ..Usage::default()
        };
        let model = Some(request.model.clone());
        Ok(ModelReply {
            items,
            stop,
            usage: Some(usage),
            model,
            response_id: None,
        })
    }
}

/// At most `tokens` of the text, and whether that is all of it.
fn cut(mut text: String, tokens: u32) -> (String, bool) {
    let limit = usize::try_from(u64::from(tokens) * TOKEN_BYTES).unwrap_or(usize::MAX);
    let whole = text.len() <= limit;
    if !whole {
        text.truncate(text.floor_char_boundary(limit));
    }
    (text, whole)
}

async fn speak(text: &str, pace: Pace, sink: &mut dyn Sink) {
    sink.open(0, ItemKind::Text);
    for (count, word) in text.split_inclusive([' ', '\n']).enumerate() {
        match pace {
            Pace::Readable => tokio::time::sleep(PACE).await,
            Pace::AtOnce if count % BURST_PIECES == BURST_PIECES - 1 => tokio::task::yield_now().await,
            Pace::AtOnce => {}
        }
        sink.push(0, word);
    }
}

/// Opens the call as item `item` and sends its arguments.
fn ask(call: script::Call, number: usize, item: usize, sink: &mut dyn Sink) -> ReplyItem {
    let provider_call_id = format!("demo_{}", number + 1);
    let name = call.tool.to_owned();
    sink.open(
        item,
        ItemKind::Call {
            name: name.clone(),
            provider_call_id: provider_call_id.clone(),
        },
    );
    sink.push(item, &Value::Object(call.arguments.clone()).to_string());
    ReplyItem::Call(ToolCall {
        provider_call_id,
        name,
        arguments: Ok(call.arguments),
        private: None,
    })
}

/// Bytes the items say.
fn said(items: &[ReplyItem]) -> u64 {
    let bytes = |item: &ReplyItem| match item {
        ReplyItem::Text { text, .. } => text.len(),
        ReplyItem::Call(call) => call
            .arguments
            .as_ref()
            .map_or(0, |map| Value::Object(map.clone()).to_string().len()),
        _ => 0,
    };
    items.iter().map(bytes).sum::<usize>() as u64
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(TOKEN_BYTES)
}

#[cfg(test)]
mod tests;
