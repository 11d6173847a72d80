//! JSON as text: mending what strict parsers refuse, and writing objects the way models write them.

use std::fmt::Write as _;

/// The JSON object of an event that did not parse, mended: halves of surrogate pairs, which servers that cut texts by UTF-16
/// units send, become U+FFFD; of a repeated key the last value counts. `None` if it is broken in another way.
pub(super) fn mended(data: &str) -> Option<String> {
    let whole = without_lone_surrogates(data);
    match serde_json::from_str::<serde_json::Value>(&whole) {
        Ok(value) if value.is_object() => Some(value.to_string()),
        _ => None,
    }
}

/// `json` with every `\uD800`-`\uDFFF` escape that is not part of a pair replaced.
fn without_lone_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let unit = |from: usize| {
            let escape = escape.get(from..from + 6)?;
            u16::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
        };
        let (take, keep) = match (unit(0), unit(6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, true),
            (Some(0xD800..=0xDFFF), _) => (6, false),
            _ => (escape.chars().take(2).map(char::len_utf8).sum(), true),
        };
        let (taken, after) = escape.split_at(take);
        out.push_str(if keep { taken } else { "\\ufffd" });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Valid JSON with the spacing models use in the arguments they write, `{"a": 1, "b": [2]}`, keys in their order and
/// everything beyond ASCII escaped. For arguments that come as an object where text is documented.
pub(super) fn spaced(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    let mut place = Place::Outside;
    for character in json.chars() {
        place = match (place, character) {
            (Place::Outside, '"') => Place::String,
            (Place::Outside, ' ' | '\t' | '\n' | '\r') => continue,
            (Place::Outside, _) => Place::Outside,
            (Place::String, '"') => Place::Outside,
            (Place::String, '\\') => Place::Escape,
            (Place::String | Place::Escape, _) => Place::String,
        };
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _written = write!(out, "\\u{unit:04x}");
            }
        }
        if place == Place::Outside && matches!(character, ',' | ':') {
            out.push(' ');
        }
    }
    out
}

/// Where in JSON text a character stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    String,
    Escape,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_written_the_way_models_write_them() {
        let raw = "{\"b\":[1,2],\n \"a\":\"x:,\\\"y\",\"c\":\"é🙂\"}";
        assert_eq!(
            spaced(raw),
            "{\"b\": [1, 2], \"a\": \"x:,\\\"y\", \"c\": \"\\u00e9\\ud83d\\ude42\"}"
        );
    }

    #[test]
    fn half_a_surrogate_pair_and_a_repeated_key_are_mended() {
        assert_eq!(
            mended(r#"{"a":"\ud83d","b":"\ud83d\ude42 \\ud83d \ude42"}"#).as_deref(),
            Some("{\"a\":\"\u{fffd}\",\"b\":\"🙂 \\\\ud83d \u{fffd}\"}")
        );
        assert_eq!(mended(r#"{"a":1,"a":2}"#).as_deref(), Some(r#"{"a":2}"#));
        assert_eq!(mended(r#"{"a":"\ud83"#), None);
        assert_eq!(mended("[1]"), None);
    }
}
