//! What a Chat Completions stream sends, in all the dialects seen. Unknown fields are no error.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::json_text;
use crate::provider::lenient::{Number, Text};

/// One chunk.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) object: Text<'a>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<Value>,
    pub(super) x_groq: Option<Value>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub(super) index: Number,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole message, from servers that do not stream.
    #[serde(borrow)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow)]
    pub(super) reasoning: Text<'a>,
    pub(super) reasoning_details: Option<Value>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<ToolCall<'a>>>,
    /// The form before `tool_calls`.
    #[serde(borrow)]
    pub(super) function_call: Option<Function<'a>>,
}

impl Delta<'_> {
    /// Whether there is anything in it but a role.
    pub(super) fn says_something(&self) -> bool {
        let content = match &self.content {
            Content::Text(text) => text.filled().is_some(),
            Content::Json(_) => true,
        };
        let texts = [&self.refusal, &self.reasoning_content, &self.reasoning];
        content
            || texts.iter().any(|text| text.filled().is_some())
            || self.reasoning_details.is_some()
            || self.tool_calls.is_some()
            || self.function_call.is_some()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall<'a> {
    pub(super) index: Number,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
    /// Google's: the signature of the thought that led to the call, wanted back with it.
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    /// Text, or an object from servers that parse it themselves.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// A string, or a list of parts.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Text(Text<'a>),
    Json(Value),
}

impl Default for Content<'_> {
    fn default() -> Self {
        Self::Text(Text::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of parts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Text::deserialize(serde::de::value::BorrowedStrDeserializer::new(text)).map(Content::Text)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Text::from(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(serde::de::value::SeqAccessDeserializer::new(seq)).map(Content::Json)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Content::Json)
    }
}

/// The text and the thinking of content sent as a list of parts.
pub(super) fn parts_of(parts: &Value) -> (Option<Cow<'_, str>>, Option<String>) {
    let (mut text, mut thinking) = (String::new(), String::new());
    let words = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    for part in parts.as_array().into_iter().flatten() {
        match part.get("type").and_then(Value::as_str) {
            Some("text") => text.push_str(&words(part.get("text"))),
            Some("thinking") => match part.get("thinking") {
                Some(Value::Array(pieces)) => {
                    thinking.extend(pieces.iter().map(|piece| words(piece.get("text"))));
                }
                other => thinking.push_str(&words(other)),
            },
            _ => {}
        }
    }
    (
        (!text.is_empty()).then_some(Cow::Owned(text)),
        (!thinking.is_empty()).then_some(thinking),
    )
}

/// A fragment of arguments, or all of them as an object from servers that parse them.
pub(super) fn argument_text(raw: &str) -> Cow<'_, str> {
    if raw.starts_with('"') {
        return serde_json::from_str::<Text<'_>>(raw).unwrap_or_default().into_cow();
    }
    Cow::Owned(json_text::spaced(raw))
}
