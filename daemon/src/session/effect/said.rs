//! What a model says, without the keys the daemon holds: before anybody sees it, before it is judged, recorded or run. A model that has
//! learned a key, from a person or a picture, can neither show it nor use it.
//!
//! What goes back to the provider is cleaned alike, so that history, approvals and commands all hold the same words. Reasoning whose
//! words changed does not go back: its signature covers them.

use crate::auth::{RedactedStream, Redactor};
use crate::provider::{BadArguments, ReplyItem, ToolCall};
use serde_json::Value;
use std::collections::BTreeMap;

/// An item of a reply, without keys.
pub(super) fn clean(item: ReplyItem, redactor: &Redactor) -> ReplyItem {
    let private = |private: Option<Value>| private.map(|value| redactor.clean_value(value));
    match item {
        ReplyItem::Text { text, private: kept } => ReplyItem::Text {
            text: redactor.clean_text(text),
            private: private(kept),
        },
        ReplyItem::Reasoning { text, private: kept } => {
            let clean = redactor.clean(&text).into_owned();
            let private = private(kept).filter(|_| clean == text);
            ReplyItem::Reasoning { text: clean, private }
        }
        ReplyItem::Refusal { text } => ReplyItem::Refusal {
            text: redactor.clean_text(text),
        },
        ReplyItem::Opaque { private } => ReplyItem::Opaque {
            private: redactor.clean_value(private),
        },
        ReplyItem::Call(call) => ReplyItem::Call(clean_call(call, redactor)),
    }
}

fn clean_call(call: ToolCall, redactor: &Redactor) -> ToolCall {
    let arguments = match call.arguments {
        Ok(arguments) => match redactor.clean_value(Value::Object(arguments)) {
            Value::Object(arguments) => Ok(arguments),
            other => Err(BadArguments {
                raw: other.to_string(),
                message: "the arguments are no object".to_owned(),
            }),
        },
        Err(BadArguments { raw, message }) => Err(BadArguments {
            raw: redactor.clean_text(raw),
            message: redactor.clean_text(message),
        }),
    };
    ToolCall {
        name: redactor.clean_text(call.name),
        arguments,
        private: call.private.map(|value| redactor.clean_value(value)),
        ..call
    }
}

/// The items of a reply while they grow.
pub(super) struct Growing {
    redactor: Redactor,
    /// By place in the reply; bounded by what a reply may hold.
    items: BTreeMap<usize, RedactedStream>,
}

impl Growing {
    pub(super) fn new(redactor: &Redactor) -> Self {
        Self {
            redactor: redactor.clone(),
            items: BTreeMap::new(),
        }
    }

    /// A text that comes at once.
    pub(super) fn clean(&self, text: String) -> String {
        self.redactor.clean_text(text)
    }

    /// What of an item can be shown, now that it has grown by `text`.
    pub(super) fn push(&mut self, index: usize, text: &str) -> String {
        let stream = self.items.entry(index).or_insert_with(|| self.redactor.stream());
        stream.push(text)
    }

    /// What was held back of each item, when the reply is whole.
    pub(super) fn finish(self) -> impl Iterator<Item = (usize, String)> {
        self.items
            .into_iter()
            .map(|(index, mut stream)| (index, stream.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEY: &str = "sk-0123456789";
    const MARK: &str = "[redacted: profile p]";

    fn redactor() -> Redactor {
        let redactor = Redactor::default();
        redactor.learn("p", [KEY]);
        redactor
    }

    #[test]
    fn a_call_is_clean_in_all_that_is_judged_and_run() {
        let call = ToolCall {
            provider_call_id: "call_1".to_owned(),
            name: "bash".to_owned(),
            arguments: Ok(serde_json::Map::from_iter([(
                "command".to_owned(),
                json!(format!("curl -H {KEY}")),
            )])),
            private: Some(json!({"custom": KEY})),
        };
        let ReplyItem::Call(clean) = clean(ReplyItem::Call(call), &redactor()) else {
            unreachable!("a call stays a call");
        };
        let arguments = clean.arguments.map(Value::Object);
        assert_eq!(arguments, Ok(json!({"command": format!("curl -H {MARK}")})));
        assert_eq!(clean.private, Some(json!({"custom": MARK})));
    }

    #[test]
    fn reasoning_whose_words_changed_loses_its_signature_and_other_reasoning_keeps_it() {
        let reasoning = |text: &str| ReplyItem::Reasoning {
            text: text.to_owned(),
            private: Some(json!({"signature": "s"})),
        };
        assert_eq!(clean(reasoning("hm"), &redactor()), reasoning("hm"));
        let changed = ReplyItem::Reasoning {
            text: format!("the key is {MARK}"),
            private: None,
        };
        assert_eq!(clean(reasoning(&format!("the key is {KEY}")), &redactor()), changed);
    }

    #[test]
    fn what_is_shown_while_items_grow_adds_up_to_what_is_recorded() {
        let mut growing = Growing::new(&redactor());
        let mut shown = [String::new(), String::new()];
        for (index, piece) in [
            (0, "a sk-01234"),
            (1, "{\"x\":\"sk-"),
            (0, "56789 b sk-"),
            (1, "0123456789\"}"),
        ] {
            let piece = growing.push(index, piece);
            assert!(!piece.contains("sk-0"), "{piece}");
            shown
                .get_mut(index)
                .into_iter()
                .for_each(|shown| shown.push_str(&piece));
        }
        for (index, rest) in growing.finish() {
            shown.get_mut(index).into_iter().for_each(|shown| shown.push_str(&rest));
        }
        assert_eq!(shown, [format!("a {MARK} b sk-"), format!("{{\"x\":\"{MARK}\"}}")]);
    }
}
