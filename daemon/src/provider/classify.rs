//! From a provider's error, in any of the shapes seen in the wild, to a class.
//!
//! Codes and types come first, then the words of the message, then the HTTP status: gateways send a bad key as 400 and a
//! context overflow as 400, 413, 429 or 500.

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::decoded::InStreamError;
use super::error::{Class, ModelError};
use super::retry_after;

/// A response whose status is not 200, or whose body is no stream.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a HeaderMap,
    /// The body, possibly cut.
    pub(super) body: &'a [u8],
}

/// The failure a body with `status` means where nothing is known of its headers.
pub fn classify_body(status: u16, body: &[u8]) -> ModelError {
    classify(
        &Answer {
            status,
            headers: &HeaderMap::new(),
            body,
        },
        Timestamp::UNIX_EPOCH,
    )
}

/// The failure `answer` means. `now` is for headers that name a moment.
pub(super) fn classify(answer: &Answer<'_>, now: Timestamp) -> ModelError {
    let report = Report::read(answer.body);
    let class = report.class(Some(answer.status));
    let said = report.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let message = match said {
        Some(text) => format!("the provider answered {}: {text}", answer.status),
        None => format!("the provider answered {} without a readable message", answer.status),
    };
    let mut error = ModelError::new(class, message);
    if class.retryable() {
        error.retry_after = retry_after::from_headers(answer.headers, now).or_else(|| report.wait());
    }
    report.hint(error)
}

/// The failure an error event inside a stream means.
pub(super) fn in_stream(event: &InStreamError) -> ModelError {
    let report = Report {
        names: [event.kind.clone(), code_text(event.code.as_ref())]
            .into_iter()
            .flatten()
            .collect(),
        message: event.message.clone(),
    };
    let said = event
        .message
        .as_deref()
        .or(event.kind.as_deref())
        .unwrap_or("no message");
    let mut error = ModelError::new(
        report.class(event.status),
        format!("the provider failed in mid-reply: {said}"),
    );
    if error.class.retryable() {
        error.retry_after = report.wait();
    }
    report.hint(error)
}

/// What an error body says, whatever its shape.
#[derive(Debug, Default)]
struct Report {
    /// Its types and codes.
    names: Vec<String>,
    message: Option<String>,
}

impl Report {
    fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(list)) => list.first().map(Self::from_json).unwrap_or_default(),
            Ok(json) => Self::from_json(&json),
            Err(_) => Self {
                names: Vec::new(),
                message: plain(&text),
            },
        }
    }

    /// Shapes: `{error: {…}}`, `{error: "text"}` with or without `code`, `{detail}`, `{message, code}` flat.
    fn from_json(json: &Value) -> Self {
        let error = json.get("error").unwrap_or(&Value::Null);
        let inner = [error, json];
        let names = inner
            .iter()
            .flat_map(|level| [level.get("type"), level.get("code")])
            .filter_map(code_text)
            .filter(|name| name != "error")
            .collect();
        // What a gateway was told by the provider behind it says more than its own words.
        let behind = error
            .pointer("/metadata/raw")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let own = error
            .as_str()
            .map(str::to_owned)
            .or_else(|| inner.iter().find_map(|level| text_of(level.get("message")?)))
            .or_else(|| inner.iter().find_map(|level| text_of(level.get("detail")?)));
        let message = match (own, behind) {
            (Some(own), Some(behind)) => Some(format!("{own}: {behind}")),
            (own, behind) => own.or(behind),
        };
        Self { names, message }
    }

    fn class(&self, status: Option<u16>) -> Class {
        self.names
            .iter()
            .find_map(|name| by_name(name, status))
            .or_else(|| by_message(&self.message.as_deref().unwrap_or_default().to_lowercase(), status))
            .or_else(|| self.names.iter().find_map(|name| by_general_name(name, status)))
            .unwrap_or_else(|| by_status(status))
    }

    fn wait(&self) -> Option<std::time::Duration> {
        self.message.as_deref().and_then(retry_after::from_message)
    }

    fn hint(&self, error: ModelError) -> ModelError {
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        let model = self
            .names
            .iter()
            .any(|name| matches!(name.as_str(), "model_not_found" | "not_found_error"))
            || message.contains("model not found");
        if error.class == Class::BadRequest && model {
            return error
                .with_hint("check the profile's `model`: the provider does not know it or the key may not use it");
        }
        error
    }
}

/// Names that say what happened more precisely than any status.
fn by_name(name: &str, status: Option<u16>) -> Option<Class> {
    let class = match name {
        "insufficient_quota"
        | "billing_error"
        | "billing_not_active"
        | "billing_hard_limit_reached"
        | "credit_limit_exceeded"
        | "insufficient_balance"
        | "usage_limit_reached"
        | "payment_required" => Class::Quota,
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "too_many_prompt_tokens"
        | "request_too_large"
        | "model_context_window_exceeded"
        | "context_window_exceeded" => Class::ContextTooLong,
        "authentication_error"
        | "permission_error"
        | "invalid_api_key"
        | "invalid_authentication"
        | "account_deactivated"
        | "token_expired" => Class::Authentication,
        "overloaded_error"
        | "server_overloaded"
        | "server_is_overloaded"
        | "engine_overloaded"
        | "slow_down"
        | "overloaded"
        | "unavailable_error" => Class::Overloaded,
        "rate_limit_error" => Class::RateLimited,
        "rate_limit_exceeded" if status != Some(413) && status != Some(429) => Class::RateLimited,
        "timeout_error" => Class::Timeout,
        "not_found_error" | "model_not_found" => Class::BadRequest,
        _ => return None,
    };
    Some(class)
}

/// Names used for many things: they count only where no HTTP status says more.
fn by_general_name(name: &str, status: Option<u16>) -> Option<Class> {
    match name {
        _ if status.is_some_and(|status| status >= 300) => None,
        "invalid_request_error" | "invalid_prompt" | "invalid_value" | "tool_use_failed" => Some(Class::BadRequest),
        _ => None,
    }
}

/// Words of context overflows, each from a provider of its own.
const CONTEXT_WORDS: [&str; 16] = [
    "maximum context length",
    "max context length",
    "exceeded max context",
    "exceeds the available context size",
    "exceeds the context window",
    "exceed context window",
    "exceeds the maximum context",
    "context length exceeded",
    "context window exceeds",
    "total length of all messages",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens` exceed context limit",
    "exceeds the model's maximum",
    "too large for model with",
];

const QUOTA_WORDS: [&str; 8] = [
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credits",
    "credit balance is too low",
    "more credits",
    "out of credits",
    "billing hard limit",
    "usage limit has been reached",
];

const KEY_WORDS: [&str; 8] = [
    "incorrect api key",
    "invalid api key",
    "api key is invalid",
    "api key not valid",
    "invalid x-api-key",
    "authentication fails",
    "missing authentication",
    "could not resolve authentication",
];

const CAPACITY_WORDS: [&str; 5] = [
    "overloaded",
    "at capacity",
    "over capacity",
    "no capacity",
    "loading model",
];

fn by_message(message: &str, status: Option<u16>) -> Option<Class> {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    // "Request too large … on tokens per min": one request is over the whole allowance, so waiting never helps.
    let over_allowance = matches!(status, Some(413 | 429)) && message.contains("request too large");
    if says(&QUOTA_WORDS) {
        Some(Class::Quota)
    } else if over_allowance || (status != Some(429) && says(&CONTEXT_WORDS)) {
        Some(Class::ContextTooLong)
    } else if says(&KEY_WORDS) {
        Some(Class::Authentication)
    } else if status != Some(429) && status.is_none_or(|status| status >= 500) && says(&CAPACITY_WORDS) {
        Some(Class::Overloaded)
    } else if status == Some(403) && (message.contains("moderation") || message.contains("flagged")) {
        Some(Class::BadRequest)
    } else {
        None
    }
}

fn by_status(status: Option<u16>) -> Class {
    match status {
        Some(401 | 403 | 407) => Class::Authentication,
        Some(402) => Class::Quota,
        Some(408 | 504 | 524) => Class::Timeout,
        Some(413) => Class::ContextTooLong,
        Some(425 | 429) => Class::RateLimited,
        Some(498 | 503 | 529) => Class::Overloaded,
        Some(300..=499) => Class::BadRequest,
        _ => Class::Server,
    }
}

fn code_text(code: Option<&Value>) -> Option<String> {
    match code? {
        Value::String(text) => Some(text.to_lowercase()),
        _ => None,
    }
}

/// A message that is a string, or a list of validation errors.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// A body that is no JSON: its first words, unless it is a web page.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') {
        None
    } else {
        Some(text.chars().take(500).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn class(status: u16, body: &str) -> Class {
        error(status, body).class
    }

    fn error(status: u16, body: &str) -> ModelError {
        classify(
            &Answer {
                status,
                headers: &HeaderMap::new(),
                body: body.as_bytes(),
            },
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn every_known_shape_of_an_error_body_is_read() {
        let cases = [
            (
                400,
                r#"{"error":"Incorrect API key provided: x","code":"Client specified an invalid argument"}"#,
            ),
            (401, r#"{"detail":"Invalid API Key"}"#),
            (403, "<html>forbidden</html>"),
            (401, ""),
        ];
        for (status, body) in cases {
            assert_eq!(class(status, body), Class::Authentication, "{body}");
        }
        let cases = [
            (
                400,
                r#"{"object":"error","message":"Logprobs are not enabled","type":"invalid","code":"3051"}"#,
            ),
            (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#),
            (404, r#"{"error":{"code":"model_not_found","message":"no such model"}}"#),
            (
                400,
                r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
            ),
            (307, ""),
        ];
        for (status, body) in cases {
            assert_eq!(class(status, body), Class::BadRequest, "{body}");
        }
    }

    #[test]
    fn a_context_overflow_is_known_by_code_or_words() {
        let cases = [
            (
                400,
                r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","type":"invalid_request_error"}}"#,
            ),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#),
            (
                500,
                r#"{"error":{"message":"the request exceeds the available context size","type":"server_error"}}"#,
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ),
            (
                429,
                r#"{"error":{"code":"rate_limit_exceeded","message":"Request too large for gpt on tokens per min"}}"#,
            ),
        ];
        for (status, body) in cases {
            assert_eq!(class(status, body), Class::ContextTooLong, "{body}");
        }
    }

    #[test]
    fn an_empty_account_is_not_a_rate_limit() {
        assert_eq!(
            class(429, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#),
            Class::Quota
        );
        assert_eq!(class(402, "{}"), Class::Quota);
        assert_eq!(
            class(400, r#"{"error":{"message":"Your credit balance is too low"}}"#),
            Class::Quota
        );
        let limited = error(
            429,
            r#"{"error":{"code":"rate_limit_exceeded","message":"Please try again in 18.642s."}}"#,
        );
        assert_eq!(
            (limited.class, limited.retry_after),
            (Class::RateLimited, Some(Duration::from_millis(18_642)))
        );
    }

    #[test]
    fn failures_of_the_provider_can_be_tried_again() {
        for (status, body, wanted) in [
            (
                500,
                r#"{"error":{"type":"api_error","message":"Internal server error"}}"#,
                Class::Server,
            ),
            (502, "<html>", Class::Server),
            (
                503,
                r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#,
                Class::Overloaded,
            ),
            (529, "", Class::Overloaded),
            (
                200,
                r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Class::Overloaded,
            ),
        ] {
            assert_eq!(class(status, body), wanted, "{status} {body}");
            assert!(wanted.retryable());
        }
    }

    #[test]
    fn an_error_event_is_classified_like_a_body() {
        let event =
            |json: &str| serde_json::from_str(json).map(|json| in_stream(&InStreamError::from_value(&json)).class);
        for (json, wanted) in [
            (
                r#"{"type":"overloaded_error","message":"Overloaded"}"#,
                Class::Overloaded,
            ),
            (
                r#"{"type":"api_error","message":"Internal server error"}"#,
                Class::Server,
            ),
            (
                r#"{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}"#,
                Class::Quota,
            ),
            (r#"{"code":400,"message":"Token limit reached"}"#, Class::BadRequest),
            (
                r#"{"code":"tool_use_failed","status_code":400,"type":"invalid_request_error"}"#,
                Class::BadRequest,
            ),
            (r#""something""#, Class::Server),
        ] {
            assert_eq!(event(json).ok(), Some(wanted), "{json}");
        }
    }
}
