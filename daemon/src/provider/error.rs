//! What can go wrong with a model call: a class the turn loop acts on, and words for a person.

use std::fmt;
use std::time::Duration;

use protocol::Usage;

/// Longest message kept, in bytes; providers sometimes echo whole requests.
const MESSAGE_LIMIT: usize = 2 * 1024;

/// What kind of failure it is, and so what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The key is missing, wrong or not allowed to do this.
    Authentication,
    /// The account has no money or allowance left; waiting does not help.
    Quota,
    /// The request is larger than the model or the provider takes.
    ContextTooLong,
    /// The provider does not accept this request.
    BadRequest,
    /// Too many requests or tokens in a short time.
    RateLimited,
    /// The provider has no capacity at the moment.
    Overloaded,
    /// The provider failed.
    Server,
    /// The reply ended before its terminal marker.
    StreamCut,
    /// Nothing came for longer than the profile allows.
    Timeout,
    /// No connection came about.
    Connect,
    /// The reply is larger than the daemon takes.
    ReplyTooLarge,
    /// The profile or the context may not be used as it stands; nothing was sent.
    Refused,
}

impl Class {
    /// Whether the same request may succeed later.
    pub fn retryable(self) -> bool {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Server | Self::StreamCut | Self::Timeout | Self::Connect => {
                true
            }
            Self::Authentication
            | Self::Quota
            | Self::ContextTooLong
            | Self::BadRequest
            | Self::ReplyTooLarge
            | Self::Refused => false,
        }
    }

    /// The stable name used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Quota => "quota",
            Self::ContextTooLong => "context_too_long",
            Self::BadRequest => "bad_request",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::StreamCut => "stream_cut",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::ReplyTooLarge => "reply_too_large",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed model call. The texts hold no secret of the profile and no control characters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub class: Class,
    /// What happened, at most 2 KiB.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// How long the provider asks to wait. Not bounded here.
    pub retry_after: Option<Duration>,
    /// What the failed call cost, as far as the provider said.
    pub usage: Option<Usage>,
}

impl ModelError {
    /// A failure of `class` with the class's own hint.
    pub fn new(class: Class, message: impl AsRef<str>) -> Self {
        Self {
            class,
            message: printable(message.as_ref()),
            hint: hint(class).map(str::to_owned),
            retry_after: None,
            usage: None,
        }
    }

    /// The same with another hint.
    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn hint(class: Class) -> Option<&'static str> {
    match class {
        Class::Authentication => Some("check the key of this profile and what it may use"),
        Class::Quota => Some("check the plan and the balance of the provider account"),
        Class::ContextTooLong => Some("compact the session or use a model with a larger context window"),
        Class::BadRequest | Class::ReplyTooLarge | Class::Refused => None,
        Class::Connect => Some("check base_url, the network and the proxy settings"),
        Class::RateLimited | Class::Overloaded | Class::Server | Class::StreamCut | Class::Timeout => None,
    }
}

/// `text` without control characters and cut to the limit at a character border.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MESSAGE_LIMIT));
    for character in text.chars() {
        if out.len() + character.len_utf8() > MESSAGE_LIMIT {
            out.push('…');
            break;
        }
        out.push(if character.is_control() { ' ' } else { character });
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_bounded_and_holds_no_control_characters() {
        let error = ModelError::new(Class::Server, format!("a\u{1b}[31m{}", "ä".repeat(4000)));
        assert!(error.message.len() <= MESSAGE_LIMIT + '…'.len_utf8());
        assert!(!error.message.chars().any(char::is_control));
    }
}
