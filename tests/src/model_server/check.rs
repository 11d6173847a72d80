//! What is wrong with a request: the rules all wires share. A wire parses its messages strictly, then the conversation they
//! make is held against the rules here.

use super::seen::Said;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// A checked value, or what is wrong, for the person who reads the test's output.
pub(super) type Check<T> = Result<T, String>;

/// Fails with `wrong` unless `holds`.
pub(super) fn require(holds: bool, wrong: impl FnOnce() -> String) -> Check<()> {
    if holds { Ok(()) } else { Err(wrong()) }
}

/// The object at `at`, all of whose keys are among `known`.
pub(super) fn object<'a>(value: &'a Value, at: &str, known: &[&str]) -> Check<&'a Map<String, Value>> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("{at}: expected an object, got {value}"))?;
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{at}: unknown key `{key}`")),
        None => Ok(object),
    }
}

/// The text under `key`.
pub(super) fn text<'a>(object: &'a Map<String, Value>, at: &str, key: &str) -> Check<&'a str> {
    let value = object.get(key).and_then(Value::as_str);
    value.ok_or_else(|| format!("{at}: `{key}` must be a string"))
}

/// The list under `key`.
pub(super) fn list<'a>(object: &'a Map<String, Value>, at: &str, key: &str) -> Check<&'a Vec<Value>> {
    let value = object.get(key).and_then(Value::as_array);
    value.ok_or_else(|| format!("{at}: `{key}` must be a list"))
}

/// The optional text under `key`.
pub(super) fn optional_text<'a>(object: &'a Map<String, Value>, at: &str, key: &str) -> Check<Option<&'a str>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{at}: `{key}` must be a string, got {other}")),
    }
}

/// A tool's name as the providers accept it.
pub(super) fn tool_name(name: &str, at: &str) -> Check<()> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = (1..=64).contains(&name.len()) && name.chars().all(legal);
    require(fits, || format!("{at}: `{name}` is no tool name"))
}

/// A tool's parameters: a JSON Schema of an object.
pub(super) fn schema(value: &Value, at: &str) -> Check<()> {
    let is_object = value.get("type").and_then(Value::as_str) == Some("object");
    require(is_object, || format!("{at}: the schema's `type` must be \"object\""))
}

/// A conversation: the person begins, nobody speaks twice in a row, each call gets exactly one result directly after the
/// message that makes it, no result comes without its call, the model speaks next, and tools are offered where any is used.
pub(super) fn conversation(said: &[Said], tools: &[String]) -> Check<()> {
    require(matches!(said.first(), Some(Said::User(_))), || {
        "the first message must be the user's".into()
    })?;
    require(!matches!(said.last(), Some(Said::Assistant { .. })), || {
        "the last message must not be the model's".into()
    })?;
    let mut ids = HashSet::new();
    for (at, message) in said.iter().enumerate() {
        let next = said.get(at + 1);
        match message {
            Said::User(_) => follows_user(at, next)?,
            Said::Results(_) => follows_results(at, next)?,
            Said::Assistant { calls, .. } => {
                require(calls.is_empty() || !tools.is_empty(), || {
                    format!("message {at}: calls, but no tools offered")
                })?;
                for call in calls {
                    require(ids.insert(&call.id), || {
                        format!("message {at}: call id `{}` twice", call.id)
                    })?;
                }
                let wanted: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
                follows_calls(at, &wanted, next)?;
            }
        }
    }
    Ok(())
}

fn follows_user(at: usize, next: Option<&Said>) -> Check<()> {
    match next {
        None | Some(Said::Assistant { .. }) => Ok(()),
        Some(Said::User(_)) => Err(format!("message {at}: two user messages in a row")),
        Some(Said::Results(_)) => Err(format!("message {at}: results without their calls")),
    }
}

fn follows_results(at: usize, next: Option<&Said>) -> Check<()> {
    require(!matches!(next, Some(Said::Results(_))), || {
        format!("message {at}: results twice in a row")
    })
}

fn follows_calls(at: usize, wanted: &[&str], next: Option<&Said>) -> Check<()> {
    match next {
        Some(Said::Results(results)) => {
            let mut wanted: Vec<&str> = wanted.to_vec();
            let mut given: Vec<&str> = results.iter().map(|result| result.id.as_str()).collect();
            wanted.sort_unstable();
            given.sort_unstable();
            require(wanted == given, || {
                format!("message {at}: calls {wanted:?}, but results for {given:?}")
            })
        }
        Some(Said::User(_)) if wanted.is_empty() => Ok(()),
        Some(Said::Assistant { .. }) => Err(format!("message {at}: the model speaks twice in a row")),
        _ => Err(format!("message {at}: the calls {wanted:?} have no results")),
    }
}
