//! Values written as words: durations, the unattended policy, the mode.

use std::time::Duration;

use protocol::{Mode, Unattended, UnattendedPolicy};
use serde::de::{Deserialize, Deserializer, Error};

use super::Resume;

/// A duration such as `45s`, `10m` or `1h 30m`; `0` is none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span(pub(super) Duration);

/// Text, or something that is not.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum AnyValue {
    Text(String),
    Other(serde::de::IgnoredAny),
}

impl Span {
    fn parse(text: &str) -> Option<Self> {
        if text.trim() == "0" {
            return Some(Self(Duration::ZERO));
        }
        let span: jiff::SignedDuration = text.parse().ok()?;
        Duration::try_from(span).ok().map(Self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom("not a duration; write it as \"45s\", \"10m\" or \"1h 30m\"");
        match AnyValue::deserialize(from)? {
            AnyValue::Text(text) => Self::parse(&text).ok_or_else(wrong),
            // A bare number, whose unit nobody can know.
            AnyValue::Other(_) => Err(wrong()),
        }
    }
}

/// An amount of US dollars above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dollars(pub(super) f64);

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(from)?;
        if amount.is_finite() && amount > 0.0 {
            return Ok(Self(amount));
        }
        Err(D::Error::custom(
            "an amount of US dollars is above 0; leave the key out for no limit",
        ))
    }
}

/// `wait`, `deny`, `fail`, the last two also with a time: `deny:10m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnattendedWord(pub(super) Unattended);

impl UnattendedWord {
    fn parse(text: &str) -> Option<Self> {
        let (word, after) = match text.split_once(':') {
            Some((word, after)) => (word, Some(Span::parse(after)?)),
            None => (text, None),
        };
        let policy = match (word, after) {
            ("wait", None) => UnattendedPolicy::Wait,
            ("deny", _) => UnattendedPolicy::Deny,
            ("fail", _) => UnattendedPolicy::Fail,
            _ => return None,
        };
        let after_ms = match after {
            Some(Span(after)) => Some(u64::try_from(after.as_millis()).ok()?),
            None => None,
        };
        Some(Self(Unattended { policy, after_ms }))
    }
}

impl<'de> Deserialize<'de> for UnattendedWord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || D::Error::custom("write \"wait\", \"deny\", \"fail\", or with a time \"deny:10m\"");
        Self::parse(&text).ok_or_else(wrong)
    }
}

/// A mode by its word.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeWord {
    Ask,
    Edits,
    All,
    None,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Ask => Self::Ask,
            ModeWord::Edits => Self::Edits,
            ModeWord::All => Self::All,
            ModeWord::None => Self::None,
        }
    }
}

/// `auto` or `off`.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResumeWord {
    Auto,
    Off,
}

impl From<ResumeWord> for Resume {
    fn from(word: ResumeWord) -> Self {
        match word {
            ResumeWord::Auto => Self::Auto,
            ResumeWord::Off => Self::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_write_them() {
        for (text, seconds) in [
            ("45s", 45),
            ("10m", 600),
            ("1h 30m", 5_400),
            ("1h30m", 5_400),
            ("2d", 172_800),
            ("0", 0),
        ] {
            let parsed = Span::parse(text).map(|Span(span)| span.as_secs());
            // A day has no fixed length, so it is no duration.
            assert_eq!(parsed, (text != "2d").then_some(seconds), "{text}");
        }
        for text in ["", "soon", "-5m", "10", "10 parsecs"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_unattended_policy_may_name_a_time() {
        let parse = |text| UnattendedWord::parse(text).map(|UnattendedWord(unattended)| unattended);
        assert_eq!(
            parse("wait"),
            Some(Unattended {
                policy: UnattendedPolicy::Wait,
                after_ms: None
            })
        );
        assert_eq!(
            parse("deny:10m"),
            Some(Unattended {
                policy: UnattendedPolicy::Deny,
                after_ms: Some(600_000)
            })
        );
        assert_eq!(
            parse("fail"),
            Some(Unattended {
                policy: UnattendedPolicy::Fail,
                after_ms: None
            })
        );
        for wrong in ["", "wait:5m", "deny:", "deny:soon", "never"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
