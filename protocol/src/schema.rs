//! The whole contract as one JSON Schema document: what `agentctl schema` prints and `docs/schema.json` holds. It is made from
//! the types themselves, so it cannot say anything else than they do.

use crate::error::ErrorKind;
use crate::event::Event;
use crate::frame::{Delta, End, Presence, Snapshot};
use crate::method::{each_method, each_subscription};
use crate::script::ResultLine;
use crate::{Pos, Seq, SessionId, Time, VERSION};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The document, indented, with a newline at its end.
pub fn text() -> String {
    format!("{:#}\n", sorted(document()))
}

/// With the members of each object by name, which is their order or not by a feature any crate of the build may switch on.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        value => value,
    }
}

/// The document: methods, subscriptions, frames, events, errors, and the types they share under `$defs`.
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let methods = methods(&mut generator);
    let subscriptions = subscriptions(&mut generator);
    let frames = frames(&mut generator);
    let event = schema::<Event>(&mut generator);
    let result = schema::<ResultLine>(&mut generator);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agentd protocol",
        "version": VERSION,
        "methods": methods,
        "subscriptions": subscriptions,
        "frames": frames,
        "events": event,
        "errors": errors(),
        "result_line": result,
        "$defs": generator.take_definitions(true),
    })
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn methods(generator: &mut SchemaGenerator) -> Value {
    let mut methods = Map::new();
    each_method(generator, |name, params, answer| {
        methods.insert(name.to_owned(), json!({ "params": params, "result": answer }));
    });
    Value::Object(methods)
}

fn subscriptions(generator: &mut SchemaGenerator) -> Value {
    let mut subscriptions = Map::new();
    each_subscription(generator, |name, notification, cancel, params| {
        let item = match name {
            "session.attach" => json!({ "$ref": "#/frames" }),
            _ => json!({ "$ref": "#/frames/watched" }),
        };
        let subscription = json!({ "params": params, "notification": notification, "cancel": cancel, "item": item });
        subscriptions.insert(name.to_owned(), subscription);
    });
    Value::Object(subscriptions)
}

/// Frames are told apart by `kind`, which the envelope of an event and each other frame carry beside their own fields.
fn frames(generator: &mut SchemaGenerator) -> Value {
    let tagged = |kind: &str, body: Value| json!({ "allOf": [{ "type": "object", "properties": { "kind": { "const": kind } }, "required": ["kind"] }, body] });
    let event = envelope(generator, &[]);
    let session = generator.subschema_for::<SessionId>().to_value();
    json!({
        "event": event,
        "snapshot": tagged("snapshot", schema::<Snapshot>(generator)),
        "delta": tagged("delta", schema::<Delta>(generator)),
        "presence": tagged("presence", schema::<Presence>(generator)),
        "end": tagged("end", schema::<End>(generator)),
        "watched": envelope(generator, &[("session", session)]),
    })
}

/// An event's envelope with `more` fields. `kind` and `data` are as under `events`.
fn envelope(generator: &mut SchemaGenerator, more: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    properties.insert("seq".to_owned(), schema::<Seq>(generator));
    properties.insert("pos".to_owned(), schema::<Pos>(generator));
    properties.insert("at".to_owned(), schema::<Time>(generator));
    properties.insert("kind".to_owned(), json!({ "enum": Event::KINDS }));
    properties.insert("data".to_owned(), json!({ "type": "object" }));
    properties.extend(more.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn errors() -> Value {
    let kinds = ErrorKind::ALL
        .iter()
        .map(|kind| (kind.to_string(), json!({ "code": kind.code() })));
    Value::Object(kinds.collect())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::text;
    use std::path::Path;

    /// To accept a change: `UPDATE_SCHEMA=1 cargo test -p protocol schema`.
    #[test]
    fn the_schema_in_docs_is_the_one_of_the_types() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema.json");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&file, text()).unwrap();
        }
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(
            stored == text(),
            "docs/schema.json differs from the types; see the comment of this test"
        );
    }
}
