//! From the TOML reader's words to ours: what is wrong in terms of keys, the nearest known one, and no value of the file.

pub(super) use protocol::nearest::nearest;

/// Words that open something: a slip of the finger must not be turned into one of them.
const WIDENING: &[&str] = &["all", "allow", "off"];

/// A message and a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Whether the message lacks the key it is about.
    pub(super) about_value: bool,
}

/// Rewords a message of the TOML reader or of serde. Those about types, values and variants quote the value, which may be
/// a key someone put into the wrong place.
pub(super) fn reword(message: &str) -> Said {
    unknown_key(message)
        .or_else(|| unknown_word(message))
        .or_else(|| wrong_value(message))
        .or_else(|| said_twice(message))
        .unwrap_or_else(|| Said {
            message: message.to_owned(),
            hint: None,
            about_value: false,
        })
}

/// "unknown field `max_stps`, expected one of `env`, `max_steps`"
fn unknown_key(message: &str) -> Option<Said> {
    let (key, known) = quoted_and_known(message.strip_prefix("unknown field ")?)?;
    let hint = match nearest(key, &known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    Some(Said {
        message: format!("unknown key `{key}`"),
        hint: Some(hint),
        about_value: false,
    })
}

/// "unknown variant `opnai-chat`, expected one of `openai-chat`, `demo`"
fn unknown_word(message: &str) -> Option<Said> {
    let (word, known) = quoted_and_known(message.strip_prefix("unknown variant ")?)?;
    let hint = match nearest(word, &known).filter(|meant| !WIDENING.contains(meant)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("one of: {}", known.join(", ")),
    };
    Some(Said {
        message: "unknown value".to_owned(),
        hint: Some(hint),
        about_value: true,
    })
}

/// "duplicate key": most often a table that the template has already.
fn said_twice(message: &str) -> Option<Said> {
    (message == "duplicate key").then(|| Said {
        message: "this key or table stands in the file before".to_owned(),
        hint: Some("put what belongs to a table under its first heading".to_owned()),
        about_value: false,
    })
}

/// "invalid type: string \"…\", expected u32"
fn wrong_value(message: &str) -> Option<Said> {
    let found = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))?;
    let expected = message
        .rsplit_once(", expected ")
        .map_or("another value", |(_, expected)| expected);
    let article = if found.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    let found = found.split([' ', ',']).next().unwrap_or("value");
    let message = format!("wrong value, {article} {found}: expected {}", plain_type(expected));
    Some(Said {
        message,
        hint: None,
        about_value: true,
    })
}

/// Rust's names of types mean little to the reader of a configuration.
fn plain_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "a nonzero u32" | "a nonzero usize" => "a whole number above 0",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a map" => "a table",
        "a sequence" => "a list",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// The word in the first backquotes, and those after "expected".
fn quoted_and_known(text: &str) -> Option<(&str, Vec<&str>)> {
    let (word, rest) = text.strip_prefix('`')?.rsplit_once("`, expected ").or_else(|| {
        let word = text.strip_prefix('`')?;
        word.split_once("`, there are no ")
    })?;
    // A word that itself contains "`, expected " is cut at its last one; the known names never contain backquotes.
    let known = rest.split('`').skip(1).step_by(2).collect();
    Some((word, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_about_a_value_repeats_it() {
        for message in [
            "invalid type: string \"sk-secret\", expected u32",
            "invalid value: string \"a, expected sk-secret\", expected a number",
            "unknown variant `sk-secret`, expected one of `auto`, `off`",
            "unknown variant `x`, expected sk-secret`, expected `auto`",
        ] {
            let said = reword(message);
            assert!(!format!("{said:?}").contains("sk-secret"), "{said:?}");
        }
    }

    #[test]
    fn a_word_that_opens_something_is_never_proposed() {
        let hint = |word: &str, known: &str| reword(&format!("unknown variant `{word}`, expected {known}")).hint;
        assert_eq!(
            hint("al", "one of `ask`, `edits`, `all`, `none`").as_deref(),
            Some("one of: ask, edits, all, none")
        );
        assert_eq!(
            hint("alow", "one of `allow`, `ask`").as_deref(),
            Some("one of: allow, ask")
        );
        assert_eq!(
            hint("edit", "one of `ask`, `edits`").as_deref(),
            Some("did you mean `edits`?")
        );
    }

    #[test]
    fn an_only_known_key_is_proposed() {
        let said = reword("unknown field `idle_timout`, expected `idle_timeout`");
        assert_eq!(said.message, "unknown key `idle_timout`");
        assert_eq!(said.hint.as_deref(), Some("did you mean `idle_timeout`?"));
    }
}
