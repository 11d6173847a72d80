//! Takes the keys the daemon holds out of every text that leaves it: what models and tools say, words of providers, its own log.
//!
//! Each key is looked for as it is and in the forms it takes on the way: URL-encoded, JSON-escaped, and base64 of itself or of a
//! text it stands in, in one line or in several. What comes in pieces goes through a [`Stream`], which holds back only what may be the
//! beginning of a key.

mod forms;
mod known;
mod wrapped;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use known::{Before, Known, Rest};

/// Shorter secrets are placeholders such as `ollama`; cutting them out would only garble texts.
const SHORTEST_SECRET: usize = 8;

/// The secrets that are known so far. Clones share them: what one learns all take out from then on.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Arc<Known>>>);

impl Redactor {
    /// Takes out `secrets`, which belong to `profile`, from now on. Of a profile that renews its secrets without end the oldest are
    /// forgotten.
    pub fn learn<'a>(&self, profile: &str, secrets: impl IntoIterator<Item = &'a str>) {
        for secret in secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
        {
            // The lock is held from the look to the change, so that no other secret is lost between them.
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if !known.has(secret) {
                *known = Arc::new(known.with(format!("[redacted: profile {profile}]"), secret.to_owned()));
            }
        }
    }

    /// `text` without the secrets.
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.known().clean(text)
    }

    /// `value` without the secrets in its strings and the names of its members.
    pub fn clean_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.clean_text(text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.clean_value(item)).collect()),
            Value::Object(members) => {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(name, value)| (self.clean_text(name), self.clean_value(value)))
                        .collect(),
                )
            }
            other => other,
        }
    }

    /// As `clean`, for a text that is not needed any more as it was.
    pub fn clean_text(&self, text: String) -> String {
        match self.clean(&text) {
            Cow::Owned(clean) => clean,
            Cow::Borrowed(_) => text,
        }
    }

    /// Cleans a text that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream {
            redactor: self.clone(),
            held: String::new(),
            before: Before::Other,
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.known().count())
    }
}

/// A text in pieces. Holds back less than the longest form of a key, with the line breaks in it.
pub struct Stream {
    redactor: Redactor,
    /// The beginning of what may be a secret.
    held: String,
    /// What stands before it.
    before: Before,
}

impl Stream {
    /// What of the text up to this piece can be let go now, without the secrets.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let (clean, held) = self.redactor.known().cleaned(&self.held, self.before, Rest::MayGoOn);
        self.held = held.to_owned();
        self.before = self.before.then(&clean);
        clean
    }

    /// What was held back, when nothing more comes.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.redactor.clean_text(held)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::known::{MAX_OF_PROFILE, MAX_SECRETS};
    use super::*;

    const SECRET: &str = "sk+very/secret=\"1\"";

    fn redactor(secrets: &[&str]) -> Redactor {
        let redactor = Redactor::default();
        redactor.learn("p", secrets.iter().copied());
        redactor
    }

    /// `text` as it leaves a stream that gets it in pieces of `size` characters.
    fn streamed(redactor: &Redactor, text: &str, size: usize) -> String {
        let mut stream = redactor.stream();
        let characters: Vec<char> = text.chars().collect();
        let mut clean: String = characters
            .chunks(size)
            .map(|piece| stream.push(&piece.iter().collect::<String>()))
            .collect();
        clean.push_str(&stream.finish());
        clean
    }

    #[test]
    fn every_form_of_a_secret_is_taken_out() {
        let redactor = redactor(&[SECRET]);
        for form in forms::all(SECRET) {
            let cleaned = redactor.clean(&format!("before {form} after")).into_owned();
            assert_eq!(cleaned, "before [redacted: profile p] after", "{form}");
        }
    }

    #[test]
    fn base64_of_a_text_that_holds_a_secret_does_not_give_it_away() {
        let redactor = redactor(&[SECRET]);
        for before in ["", "a", "ab", "abc", "user:"] {
            let text = format!("{before}{SECRET}\n");
            for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let cleaned = redactor.clean(&encoded).into_owned();
                let left = cleaned.replace("[redacted: profile p]", "");
                assert!(left.len() + 20 < encoded.len(), "{encoded} became {cleaned}");
            }
        }
    }

    #[test]
    fn a_secret_in_pieces_is_taken_out_and_what_is_none_is_let_go_at_once() {
        let mut stream = redactor(&["sk-0123456789"]).stream();
        assert_eq!(stream.push("key: sk-0123"), "key: ");
        assert_eq!(stream.push("456789\nsk-"), "[redacted: profile p]\n");
        assert_eq!(stream.push("ate\n"), "sk-ate\n");
        assert_eq!(stream.push("sk-01"), "");
        assert_eq!(stream.finish(), "sk-01");
    }

    #[test]
    fn the_longer_of_two_secrets_is_waited_for() {
        let redactor = redactor(&["sk-0123456789", "sk-0123456789-and-more"]);
        let mut stream = redactor.stream();
        assert_eq!(stream.push("sk-0123456789"), "");
        assert_eq!(stream.push("-and-more."), "[redacted: profile p].");
        assert_eq!(
            streamed(&redactor, "sk-0123456789-and-less", 3),
            "[redacted: profile p]-and-less"
        );
    }

    #[test]
    fn what_one_clone_learns_a_stream_that_runs_takes_out() {
        let redactor = Redactor::default();
        let mut stream = redactor.stream();
        assert_eq!(stream.push("new-secret "), "new-secret ");
        redactor.clone().learn("late", ["new-secret"]);
        assert_eq!(stream.push("new-secret "), "[redacted: profile late] ");
    }

    #[test]
    fn a_profile_that_renews_its_secrets_forgets_its_own_oldest_and_nobody_else_s() {
        let redactor = redactor(&["the-first-one"]);
        for number in 0..=MAX_OF_PROFILE {
            redactor.learn("login", [format!("secret-{number:06}").as_str()]);
        }
        assert_eq!(
            redactor.clean("the-first-one secret-000000 secret-000001"),
            "[redacted: profile p] secret-000000 [redacted: profile login]"
        );
        for number in 0..MAX_SECRETS {
            redactor.learn(&format!("q{number}"), [format!("other-{number:06}").as_str()]);
        }
        assert_eq!(redactor.clean("the-first-one"), "the-first-one");
        assert_eq!(redactor.known().count(), MAX_SECRETS);
    }

    /// `text` in lines of `width` characters, which begin with `indent`.
    fn in_lines(text: &str, width: usize, indent: &str) -> String {
        let characters: Vec<char> = text.chars().collect();
        let lines = characters.chunks(width).map(|line| line.iter().collect::<String>());
        lines.collect::<Vec<_>>().join(&format!("\n{indent}"))
    }

    #[test]
    fn base64_in_lines_does_not_give_a_secret_away() {
        let redactor = redactor(&[SECRET]);
        for width in 1..40 {
            for (before, indent) in [("", ""), ("user:", "  "), ("some text before it ", "\t")] {
                let encoded = STANDARD.encode(format!("{before}{SECRET} and text behind it"));
                let text = format!("key: |\n  {}\nend", in_lines(&encoded, width, indent));
                let cleaned = redactor.clean(&text).into_owned();
                let left = cleaned.replace("[redacted: profile p]", "");
                assert!(
                    left.ends_with("\nend") && left.len() + 20 < text.len(),
                    "{width}: {text} became {cleaned}"
                );
                let pieces: String = streamed(&redactor, &text, 5);
                let left = pieces.replace("[redacted: profile p]", "");
                assert!(
                    left.ends_with("\nend") && left.len() + 18 < text.len(),
                    "{width}: {text} came as {pieces}"
                );
            }
        }
    }

    #[test]
    fn a_line_that_only_ends_like_the_beginning_of_a_key_is_shown_at_once() {
        let form = STANDARD.encode(SECRET);
        let mut stream = redactor(&[SECRET]).stream();
        let begun = form.get(..2).unwrap_or_default();
        assert_eq!(stream.push(&format!("word {begun}\n")), format!("word {begun}\n"));
        let begun = form.get(..3).unwrap_or_default();
        assert_eq!(stream.push(&format!("word {begun}\n")), "word ");
        assert_eq!(stream.push("word\n"), format!("{begun}\nword\n"));
    }

    #[test]
    fn json_is_cleaned_in_its_strings_and_stays_what_it_is() {
        let redactor = redactor(&["sk-0123456789"]);
        let value = serde_json::json!({"a": ["x sk-0123456789", 1, null], "sk-0123456789": {"b": true}});
        let mark = "[redacted: profile p]";
        assert_eq!(
            redactor.clean_value(value),
            serde_json::json!({"a": [format!("x {mark}"), 1, null], mark: {"b": true}})
        );
    }

    #[test]
    fn placeholders_do_not_garble_texts() {
        assert_eq!(redactor(&["ollama", ""]).clean("ollama it is"), "ollama it is");
    }

    #[test]
    fn a_redactor_does_not_print_its_secrets() {
        assert!(!format!("{:?}", redactor(&["hidden-value"])).contains("hidden"));
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_come_out_as_the_whole_does(
            parts in proptest::collection::vec(prop_oneof!["abcabcab", "abcabcabd", "[a-dé]{0,9}"], 0..12),
            size in 1_usize..9,
        ) {
            let redactor = redactor(&["abcabcab", "cabcabcabd"]);
            let text = parts.concat();
            prop_assert_eq!(streamed(&redactor, &text, size), redactor.clean(&text).into_owned());
        }
    }
}
