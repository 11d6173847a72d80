//! Reasoning in Chat Completions: no vendor field, four habits. Reading keeps which one it was; replaying repeats it.
//!
//! The private value of a reasoning item is `{"field": NAME}` for text in `reasoning_content` or `reasoning`,
//! `{"field": "thinking"}` for thinking parts of the content, and has `"details"` where the server sends
//! `reasoning_details`, which go back unchanged but for deltas being joined.

use serde_json::{Map, Value, json};

/// Where a server puts its reasoning text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    ReasoningContent,
    Reasoning,
    Thinking,
    Details,
}

impl Field {
    fn as_str(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::Thinking => "thinking",
            Self::Details => "reasoning_details",
        }
    }
}

/// The private value of a reasoning item.
pub(super) fn private(field: Field, details: &[Value]) -> Value {
    let mut private = json!({ "field": field.as_str() });
    if !details.is_empty() {
        private["details"] = Value::Array(join(details));
    }
    private
}

/// What an assistant message gets back of its reasoning.
pub(super) enum Replay<'a> {
    /// A field of the message.
    Field { name: &'static str, value: Value },
    /// The first part of the content.
    Part(&'a str),
}

/// How `text` with `private` goes back. `None` for reasoning this adapter did not make.
pub(super) fn replay<'a>(text: &'a str, private: &Value) -> Option<Replay<'a>> {
    if let Some(details) = private.get("details") {
        return Some(Replay::Field {
            name: "reasoning_details",
            value: details.clone(),
        });
    }
    let field = private.get("field")?.as_str()?;
    match [Field::ReasoningContent, Field::Reasoning]
        .into_iter()
        .find(|known| known.as_str() == field)
    {
        Some(known) => Some(Replay::Field {
            name: known.as_str(),
            value: json!(text),
        }),
        None if field == Field::Thinking.as_str() => Some(Replay::Part(text)),
        None => None,
    }
}

/// The text of one delta's details.
pub(super) fn text_of(details: &[Value]) -> String {
    let text = |detail: &Value, key: &str| {
        detail
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    details
        .iter()
        .filter_map(|detail| text(detail, "text").or_else(|| text(detail, "summary")))
        .collect()
}

/// Deltas to whole details: neighbours of the same type, index and id are one. Texts grow, everything else is replaced.
fn join(deltas: &[Value]) -> Vec<Value> {
    let mut whole: Vec<Map<String, Value>> = Vec::new();
    for delta in deltas.iter().filter_map(Value::as_object) {
        match whole.last_mut().filter(|last| continues(last, delta)) {
            Some(last) => merge(last, delta),
            None => whole.push(delta.clone()),
        }
    }
    whole.into_iter().map(Value::Object).collect()
}

fn continues(last: &Map<String, Value>, delta: &Map<String, Value>) -> bool {
    let filled = |map: &Map<String, Value>, key: &str| map.get(key).filter(|value| !value.is_null()).cloned();
    let same_id = match (filled(last, "id"), filled(delta, "id")) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    same_id && last.get("type") == delta.get("type") && filled(last, "index") == filled(delta, "index")
}

fn merge(last: &mut Map<String, Value>, delta: &Map<String, Value>) {
    for (key, value) in delta {
        match (key.as_str(), last.get_mut(key), value) {
            (_, _, Value::Null) => {}
            ("text" | "summary", Some(Value::String(text)), Value::String(more)) => text.push_str(more),
            _ => {
                last.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_of_one_detail_are_joined_and_the_signature_finds_its_text() {
        let deltas = [
            json!({ "type": "reasoning.text", "index": 0, "text": "I ", "format": "f" }),
            json!({ "type": "reasoning.text", "index": 0, "text": "think", "signature": null }),
            json!({ "type": "reasoning.text", "index": 0, "signature": "sig" }),
            json!({ "type": "reasoning.encrypted", "index": 1, "id": "a", "data": "x" }),
            json!({ "type": "reasoning.encrypted", "index": 1, "id": "b", "data": "y" }),
        ];
        let whole = join(&deltas);
        let expected = [
            json!({ "type": "reasoning.text", "index": 0, "text": "I think", "format": "f", "signature": "sig" }),
            deltas[3].clone(),
            deltas[4].clone(),
        ];
        assert_eq!(whole, expected);
    }
}
