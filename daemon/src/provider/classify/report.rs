//! What an error body or event says, whatever its shape.
//!
//! Shapes: `{error: {…}}`, `{error: "text"}` with or without `code`, `{detail}`, `{message, code}` flat, `{errors: [{…}]}`, any of them
//! in a list, and a gateway's `error.metadata` with what the provider behind it said and its headers.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::super::retry_after;

/// Levels of errors inside errors that are read: a gateway, and the provider behind it.
const DEPTH: usize = 2;

/// Headers of the provider behind a gateway that are read.
const HEADERS: usize = 32;

/// Characters kept of a body that is no JSON.
const PLAIN: usize = 500;

/// What an error says.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Its types and codes, in lower case.
    pub(super) names: Vec<String>,
    pub(super) message: Option<String>,
    /// The HTTP status it names itself.
    pub(super) status: Option<u16>,
    /// How long it asks to wait.
    pub(super) wait: Option<Duration>,
    /// What a gateway tells of the headers it got.
    pub(super) headers: HeaderMap,
    pub(super) lasting: Lasting,
}

/// Whether the limit that was reached lasts longer than anybody waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Lasting {
    #[default]
    Unsaid,
    Yes,
}

impl Report {
    pub(super) fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(json) => Self::from_json(&json, DEPTH),
            Err(_) => Self::from_message(plain(&String::from_utf8_lossy(body))),
        }
    }

    /// The `error` of an event.
    pub(super) fn of_event(error: &Value) -> Self {
        Self::from_error(error, &Value::Null, DEPTH)
    }

    fn from_message(message: Option<String>) -> Self {
        Self {
            wait: message.as_deref().and_then(retry_after::from_message),
            message,
            ..Self::default()
        }
    }

    fn from_json(json: &Value, depth: usize) -> Self {
        // Google's compatible endpoint puts its error into a list.
        let json = json
            .as_array()
            .map_or(json, |list| list.first().unwrap_or(&Value::Null));
        let error = json.get("error").or_else(|| json.pointer("/errors/0"));
        Self::from_error(error.unwrap_or(&Value::Null), json, depth)
    }

    /// `error` within `outer`, each of which may say something.
    fn from_error(error: &Value, outer: &Value, depth: usize) -> Self {
        let levels = [error, outer];
        let behind = error.pointer("/metadata/raw").filter(|_| depth > 0);
        let behind = behind.map(|raw| Self::from_raw(raw, depth - 1)).unwrap_or_default();
        let own = text_of(error)
            .or_else(|| levels.iter().find_map(|level| text_of(level.get("message")?)))
            .or_else(|| levels.iter().find_map(|level| text_of(level.get("detail")?)));
        // What a gateway was told by the provider behind it says more than its own words.
        let message = match (own, behind.message) {
            (Some(own), Some(behind)) => Some(format!("{own}: {behind}")),
            (own, behind) => own.or(behind),
        };
        let mut names: Vec<String> = levels.iter().flat_map(|level| names_of(level)).collect();
        names.extend(behind.names);
        let details = || error.get("details").and_then(Value::as_array).into_iter().flatten();
        let named = details().find_map(|detail| retry_after::from_span(detail.get("retryDelay")?.as_str()?));
        Self {
            wait: named
                .or_else(|| message.as_deref().and_then(retry_after::from_message))
                .or(behind.wait),
            status: levels.iter().find_map(|level| status_of(level)),
            lasting: if details().any(is_daily) {
                Lasting::Yes
            } else {
                Lasting::Unsaid
            },
            headers: error.pointer("/metadata/headers").map(headers_of).unwrap_or_default(),
            names,
            message,
        }
    }

    /// What the provider behind a gateway said: JSON, JSON as text, or just words.
    fn from_raw(raw: &Value, depth: usize) -> Self {
        let Some(text) = raw.as_str() else {
            return Self::from_json(raw, depth);
        };
        match serde_json::from_str::<Value>(text) {
            Ok(json) if json.is_object() || json.is_array() => {
                let read = Self::from_json(&json, depth);
                let message = read.message.or_else(|| plain(text));
                Self { message, ..read }
            }
            _ => Self::from_message(plain(text)),
        }
    }
}

/// The types and codes of one level. `error` says nothing.
fn names_of(level: &Value) -> Vec<String> {
    let places = ["/type", "/code", "/status", "/error_type", "/innererror/code"];
    places
        .iter()
        .filter_map(|place| level.pointer(place)?.as_str())
        .map(str::to_lowercase)
        .filter(|name| name != "error")
        .collect()
}

/// A status, as a number or as its digits.
pub(in crate::provider) fn status_of(level: &Value) -> Option<u16> {
    let number = |value: &Value| match value {
        Value::String(digits) => digits.parse::<u16>().ok(),
        other => other.as_u64().and_then(|number| u16::try_from(number).ok()),
    };
    ["status_code", "code", "status"]
        .iter()
        .filter_map(|place| number(level.get(place)?))
        .find(|status| (400..600).contains(status))
}

/// Whether a detail of Google's names a limit per day.
fn is_daily(detail: &Value) -> bool {
    let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
    violations
        .filter_map(|violation| violation.get("quotaId")?.as_str())
        .any(|id| id.contains("PerDay"))
}

fn headers_of(object: &Value) -> HeaderMap {
    let pairs = object.as_object().into_iter().flatten().take(HEADERS);
    pairs
        .filter_map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(&text).ok()?))
        })
        .collect()
}

/// A message that is a string, or a list of them or of validation errors. An object is none.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => match list.as_slice() {
            [Value::String(only)] => Some(only.clone()),
            [] => None,
            _ => Some(value.to_string()),
        },
        Value::Object(map) => map.get("message").and_then(Value::as_str).map(str::to_owned),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// A body that is no JSON: its first words, unless it is a web page.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') {
        None
    } else {
        Some(text.chars().take(PLAIN).collect())
    }
}
