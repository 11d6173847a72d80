//! What a Responses stream sends, as far as it is read. Unknown events, items and fields are no error.

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
    pub(super) output_index: Number,
    #[serde(borrow)]
    pub(super) item_id: Text<'a>,
    pub(super) content_index: Number,
    pub(super) summary_index: Number,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Text<'a>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
}

/// The response as its first and last events carry it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) incomplete_details: Option<Value>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
}
