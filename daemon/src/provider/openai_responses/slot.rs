//! One output item of the wire: what was last sent of it, and what it becomes.

use serde_json::{Map, Value, json};

use crate::provider::decoded::{Call, CallEnd, CallForm, Item};

/// How an event names its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Index(u64),
    /// Servers that send no `output_index`.
    Id(String),
}

/// An output item of the wire.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    /// The item as last sent whole.
    pub(super) raw: Map<String, Value>,
    pub(super) stage: Stage,
    /// Streamed arguments or input.
    pub(super) arguments: String,
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Growing,
    Done,
    /// Done, but cut by a limit.
    Cut,
}

impl Slot {
    pub(super) fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.raw.get(field).and_then(Value::as_str)
    }

    /// The arguments, the finished item's own before the streamed ones.
    pub(super) fn whole_arguments(&self) -> &str {
        let field = if self.kind() == "custom_tool_call" {
            "input"
        } else {
            "arguments"
        };
        let whole = self.text(field).unwrap_or_default();
        if self.arguments.is_empty() || (self.stage != Stage::Growing && !whole.is_empty()) {
            whole
        } else {
            &self.arguments
        }
    }
}

/// The texts of an item's list `field`, those of `kind` only and not empty; any kind, also empty, if `kind` is empty.
pub(super) fn texts(slot: &Slot, field: &str, kind: &str, text: &str) -> Vec<String> {
    let parts = slot.raw.get(field).and_then(Value::as_array).into_iter().flatten();
    parts
        .filter(|part| kind.is_empty() || part.get("type").is_some_and(|found| found == kind))
        .map(|part| part.get(text).and_then(Value::as_str).unwrap_or_default().to_owned())
        .filter(|text| kind.is_empty() || !text.is_empty())
        .collect()
}

/// Bytes a slot keeps beside its texts.
pub(super) fn private_size(slot: &Slot) -> usize {
    match slot.kind() {
        "message" | "function_call" | "custom_tool_call" => 0,
        _ => slot
            .raw
            .iter()
            .filter(|(field, _)| *field != "result")
            .map(|(_, value)| value.to_string().len())
            .sum(),
    }
}

pub(super) fn call(slot: &Slot) -> Call {
    let custom = slot.kind() == "custom_tool_call";
    let mut private = some_fields(slot, &["id", "namespace"]);
    if custom {
        private.get_or_insert_with(|| json!({}))["custom"] = json!(true);
    }
    Call {
        id: slot.text("call_id").map(str::to_owned),
        name: slot.text("name").unwrap_or_default().to_owned(),
        arguments: slot.whole_arguments().to_owned(),
        form: if custom { CallForm::Custom } else { CallForm::Function },
        end: if slot.stage == Stage::Done {
            CallEnd::Closed
        } else {
            CallEnd::Open
        },
        item_id: slot.text("id").map(str::to_owned),
        private,
    }
}

/// An item of the provider's own. A generated image is not kept: the provider takes the item back without it.
pub(super) fn hosted(slot: &Slot) -> Item {
    let mut raw = slot.raw.clone();
    raw.remove("result");
    let text = |field: &str| slot.text(field).map(str::to_owned);
    Item::ServerCall {
        kind: slot.kind().to_owned(),
        id: text("call_id").or_else(|| text("id")),
        name: text("name"),
        arguments: None,
        raw: Value::Object(raw),
    }
}

pub(super) fn some_fields(slot: &Slot, fields: &[&str]) -> Option<Value> {
    let kept: Map<String, Value> = fields
        .iter()
        .filter_map(|field| {
            Some((
                (*field).to_owned(),
                slot.raw.get(*field).filter(|value| !value.is_null())?.clone(),
            ))
        })
        .collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}
