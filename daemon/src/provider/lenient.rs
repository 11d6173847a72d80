//! Fields of provider JSON that never fail to parse.
//!
//! Gateways send `null`, numbers or objects where the documented type is a string. One odd field must not lose a whole
//! event, so these types take anything and keep what they can use. They borrow from the event: the path every delta takes
//! allocates nothing here.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json_text;

/// A string, or a number as its decimal form; anything else counts as absent.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// The text, if there is any.
    pub(super) fn filled(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// The text, empty when it is absent.
    pub(super) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The text, empty when it is absent.
    pub(super) fn into_cow(self) -> Cow<'a, str> {
        self.0.unwrap_or_default()
    }

    /// The text as a value of its own, if there is any.
    pub(super) fn to_filled(&self) -> Option<String> {
        self.filled().map(str::to_owned)
    }
}

impl<'a> From<String> for Text<'a> {
    fn from(text: String) -> Self {
        Self(Some(Cow::Owned(text)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Text::from(text))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Text::from(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Text::from(number.to_string()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(seq)?;
        Ok(Text::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map)?;
        Ok(Text::default())
    }
}

/// A whole number from 0; anything else counts as absent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?;
        Ok(Self(text.filled().and_then(|digits| digits.parse().ok())))
    }
}

/// Parses an event, mending it if that is what it takes; `mended` keeps the mended text alive.
pub(super) fn parse<'a, T: Deserialize<'a>>(data: &'a str, mended: &'a mut Option<String>) -> Option<T> {
    if let Ok(parsed) = serde_json::from_str(data) {
        return Some(parsed);
    }
    *mended = json_text::mended(data);
    serde_json::from_str(mended.as_deref()?).ok()
}

/// Whether an event that could not be parsed may have carried a part of the reply: it is broken JSON, or of a kind in
/// `kinds`. Lines that are no JSON object at all are a gateway's keep-alives, and unknown kinds are skipped anyway.
pub(super) fn loses(data: &str, kinds: &[&str]) -> bool {
    #[derive(serde::Deserialize)]
    struct Kind<'a> {
        #[serde(default, borrow, rename = "type")]
        kind: Text<'a>,
    }
    match serde_json::from_str::<Kind<'_>>(data) {
        Ok(event) => event.kind.filled().is_none_or(|kind| kinds.contains(&kind)),
        Err(_) => data.starts_with('{'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_taken() -> anyhow::Result<()> {
        for (json, text) in [
            ("\"a\"", "a"),
            ("\"a\\nb\"", "a\nb"),
            ("null", ""),
            ("7", "7"),
            ("-7", "-7"),
            ("1.5", ""),
            ("true", ""),
            ("[1,{\"a\":2}]", ""),
            ("{\"a\":[]}", ""),
        ] {
            assert_eq!(serde_json::from_str::<Text<'_>>(json)?.as_str(), text, "{json}");
        }
        assert_eq!(serde_json::from_str::<Number>("3")?, Number(Some(3)));
        assert_eq!(serde_json::from_str::<Number>("-3")?, Number(None));
        Ok(())
    }

    #[test]
    fn text_without_escapes_is_borrowed() -> anyhow::Result<()> {
        assert!(matches!(
            serde_json::from_str::<Text<'_>>("\"plain\"")?.0,
            Some(Cow::Borrowed(_))
        ));
        Ok(())
    }

    #[test]
    fn only_what_may_hold_a_piece_of_the_reply_counts_as_lost() {
        let kinds = ["delta"];
        assert!(loses("{\"type\":\"delta\",\"x\":1}", &kinds));
        assert!(loses("{\"type\":\"del", &kinds));
        assert!(loses("{}", &kinds));
        assert!(!loses("{\"type\":\"news\",\"x\":1}", &kinds));
        assert!(!loses("keep-alive", &kinds));
    }
}
