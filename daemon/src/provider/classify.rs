//! From a provider's error, in any of the shapes seen in the wild, to a class.
//!
//! Codes and types come first, then the words of the message, then the HTTP status: gateways send a bad key as 400 and a
//! context overflow as 400, 413, 429 or 500.

mod report;
#[cfg(test)]
mod tests;
mod words;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

pub(super) use self::report::status_of;
use self::report::{Lasting, Report};
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
    // A gateway that answers 200 before it knows better names the real status inside.
    let status = report.status.filter(|_| answer.status < 300).unwrap_or(answer.status);
    let class = class(&report, Some(status));
    let said = report.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let message = match said {
        Some(text) => format!("the provider answered {status}: {text}"),
        None => format!("the provider answered {status} without a readable message"),
    };
    let mut error = ModelError::new(class, message);
    if class.retryable() {
        error.retry_after = retry_after::from_headers(answer.headers, now)
            .or_else(|| retry_after::from_headers(&report.headers, now))
            .or(report.wait);
    }
    hint(&report, error)
}

/// The failure an error event inside a stream means.
pub(super) fn in_stream(event: &InStreamError) -> ModelError {
    let report = Report::of_event(&event.raw);
    let said = report
        .message
        .as_deref()
        .or(event.kind.as_deref())
        .unwrap_or("no message");
    let mut error = ModelError::new(
        class(&report, event.status),
        format!("the provider failed in mid-reply: {said}"),
    );
    if error.class.retryable() {
        error.retry_after = report.wait;
    }
    hint(&report, error)
}

fn class(report: &Report, status: Option<u16>) -> Class {
    let message = report.message.as_deref().unwrap_or_default().to_lowercase();
    report
        .names
        .iter()
        .find_map(|name| by_name(name, status))
        .or_else(|| by_message(&message, report, status))
        .or_else(|| report.names.iter().find_map(|name| by_general_name(name, status)))
        .unwrap_or_else(|| by_status(status))
}

/// Names that say what happened more precisely than any status.
fn by_name(name: &str, status: Option<u16>) -> Option<Class> {
    let is = |names: &[&str]| names.contains(&name);
    if is(&words::QUOTA_NAMES) {
        Some(Class::Quota)
    } else if is(&words::CONTEXT_NAMES) {
        Some(Class::ContextTooLong)
    } else if is(&words::KEY_NAMES) {
        Some(Class::Authentication)
    } else if is(&words::CAPACITY_NAMES) {
        Some(Class::Overloaded)
    } else if is(&words::MODEL_NAMES) {
        Some(Class::BadRequest)
    } else {
        match name {
            "rate_limit_error" => Some(Class::RateLimited),
            // With these statuses the words decide: one request may be over the whole allowance.
            "rate_limit_exceeded" if status != Some(413) && status != Some(429) => Some(Class::RateLimited),
            "timeout_error" => Some(Class::Timeout),
            _ => None,
        }
    }
}

/// Names used for many things: they count only where no HTTP status says more.
fn by_general_name(name: &str, status: Option<u16>) -> Option<Class> {
    match name {
        _ if status.is_some_and(|status| status >= 300) => None,
        "invalid_request_error"
        | "invalid_prompt"
        | "invalid_value"
        | "tool_use_failed"
        | "badrequesterror"
        | "invalid_argument" => Some(Class::BadRequest),
        "resource_exhausted" => Some(Class::RateLimited),
        "unavailable" => Some(Class::Overloaded),
        "deadline_exceeded" => Some(Class::Timeout),
        _ => None,
    }
}

fn by_message(message: &str, report: &Report, status: Option<u16>) -> Option<Class> {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    // "Request too large … on tokens per min": one request is over the whole allowance, so waiting never helps.
    let over_allowance = matches!(status, Some(413 | 429)) && message.contains("request too large");
    // Google calls a limit per minute a quota too, but then says when to come back.
    let empty = says(&words::QUOTA_WORDS) && report.wait.is_none();
    if empty || report.lasting == Lasting::Yes || says(&words::LASTING_WORDS) {
        Some(Class::Quota)
    } else if over_allowance || (status != Some(429) && says(&words::CONTEXT_WORDS)) {
        Some(Class::ContextTooLong)
    } else if says(&words::KEY_WORDS) {
        Some(Class::Authentication)
    } else if status != Some(429) && status.is_none_or(|status| status >= 500) && says(&words::CAPACITY_WORDS) {
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

fn hint(report: &Report, error: ModelError) -> ModelError {
    let message = report.message.as_deref().unwrap_or_default().to_lowercase();
    let unknown = report
        .names
        .iter()
        .any(|name| words::MODEL_NAMES.contains(&name.as_str()))
        || (message.contains("model") && words::UNKNOWN_WORDS.iter().any(|word| message.contains(word)));
    if error.class == Class::BadRequest && unknown {
        return error.with_hint("check the profile's `model`: the provider does not know it or the key may not use it");
    }
    error
}
