//! What an Anthropic stream sends, as far as it is read. Unknown events, blocks and fields are no error.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::lenient::{Number, Text};

/// Any event: one flat form, so that a delta is parsed once and without a tree of values.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) index: Number,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
}

/// The `delta` of a block or of the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) signature: Text<'a>,
    #[serde(borrow)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Text<'a>,
    pub(super) citation: Option<Value>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_details: Option<&'a RawValue>,
}

/// `message_start.message`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    pub(super) usage: Option<Value>,
}

/// `message_delta.delta.stop_details`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow)]
    pub(super) explanation: Text<'a>,
}

/// A call's `input` as `content_block_start` has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}
