//! Takes the keys the daemon holds out of every text that leaves it: tool output, words of providers, its own log.
//!
//! Each key is looked for as it is and in the forms it takes on the way: URL-encoded, JSON-escaped, and base64 of itself or of a
//! text it stands in. What comes in pieces goes through a [`Stream`], which holds back only what may be the beginning of a key.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// Shorter secrets are placeholders such as `ollama`; cutting them out would only garble texts.
const SHORTEST_SECRET: usize = 8;

/// Secrets that are looked for; the oldest goes first. A daemon has a few, and clients may renew theirs without end.
const MAX_SECRETS: usize = 256;

/// The secrets that are known so far. Clones share them: what one learns all take out from then on.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Arc<Known>>>);

#[derive(Default)]
struct Known {
    /// What stands in the place of a secret, and the secret; oldest first.
    secrets: Vec<(String, String)>,
    /// All forms of all secrets.
    forms: Vec<Form>,
    /// Finds `forms`, by their position. None while there are none, and for a list too large to build, which the bounds rule out.
    finder: Option<AhoCorasick>,
}

struct Form {
    text: String,
    mark: String,
}

impl Redactor {
    /// Takes out `secrets`, which belong to `profile`, from now on.
    pub fn learn<'a>(&self, profile: &str, secrets: impl IntoIterator<Item = &'a str>) {
        for secret in secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
        {
            // The lock is held from the look to the change, so that no other secret is lost between them.
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.secrets.iter().all(|(_, old)| old != secret) {
                *known = Arc::new(known.with(format!("[redacted: profile {profile}]"), secret.to_owned()));
            }
        }
    }

    /// `text` without the secrets.
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = self.known();
        match &known.finder {
            Some(finder) if finder.is_match(text) => Cow::Owned(known.cleaned(text, Rest::Is).0),
            _ => Cow::Borrowed(text),
        }
    }

    /// Cleans a text that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream {
            redactor: self.clone(),
            held: String::new(),
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.known().secrets.len())
    }
}

/// A text in pieces. Holds back less than the longest form of a key, and never a whole line: no key has a line end.
pub struct Stream {
    redactor: Redactor,
    /// The beginning of what may be a secret.
    held: String,
}

impl Stream {
    /// What of the text up to this piece can be let go now, without the secrets.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let (clean, held) = self.redactor.known().cleaned(&self.held, Rest::MayGoOn);
        self.held = held.to_owned();
        clean
    }

    /// What was held back, when nothing more comes.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.redactor.clean(&held).into_owned()
    }
}

/// Whether more may follow a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Is,
    MayGoOn,
}

impl Known {
    fn with(&self, mark: String, secret: String) -> Self {
        let mut secrets = self.secrets.clone();
        secrets.push((mark, secret));
        let excess = secrets.len().saturating_sub(MAX_SECRETS);
        secrets.drain(..excess);
        let forms: Vec<Form> = secrets
            .iter()
            .flat_map(|(mark, secret)| {
                forms_of(secret).into_iter().map(|text| Form {
                    text,
                    mark: mark.clone(),
                })
            })
            .collect();
        let texts = forms.iter().map(|form| &form.text);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(texts)
            .ok();
        Self { secrets, forms, finder }
    }

    /// The text without secrets, and its end that may be the beginning of one.
    fn cleaned<'t>(&self, text: &'t str, rest: Rest) -> (String, &'t str) {
        let mut clean = String::with_capacity(text.len());
        let mut left = text;
        loop {
            let open = if rest == Rest::MayGoOn {
                self.beginning_in(left)
            } else {
                left.len()
            };
            let found = self
                .finder
                .as_ref()
                .and_then(|finder| finder.find(left))
                .filter(|found| found.start() < open);
            let Some(found) = found else {
                let (done, open) = left.split_at(open);
                clean.push_str(done);
                return (clean, open);
            };
            clean.push_str(left.get(..found.start()).unwrap_or_default());
            clean.push_str(self.forms.get(found.pattern().as_usize()).map_or("", |form| &form.mark));
            left = left.get(found.end()..).unwrap_or_default();
        }
    }

    /// Where the longest end of `text` starts that a secret begins with; the text's length if there is none.
    fn beginning_in(&self, text: &str) -> usize {
        let of_form = |form: &Form| {
            let form = form.text.as_bytes();
            let longest = text.len().min(form.len() - 1);
            (1..=longest).rev().find(|length| {
                form.get(..*length)
                    .is_some_and(|begun| text.as_bytes().ends_with(begun))
            })
        };
        text.len() - self.forms.iter().filter_map(of_form).max().unwrap_or(0)
    }
}

/// The forms a secret is looked for in, none of them empty.
fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned(), url_encoded(secret), json_escaped(secret)];
    for alphabet in [STANDARD, URL_SAFE] {
        forms.extend((0..3).map(|before| base64_inside(secret, before, &alphabet)));
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Base64 of `secret` behind `before` other bytes, without the characters that these or what follows have a part in.
fn base64_inside(secret: &str, before: usize, alphabet: &Alphabet) -> String {
    const BITS: usize = 6;
    let bytes = [vec![0; before], secret.as_bytes().to_vec()].concat();
    let encoded = GeneralPurpose::new(alphabet, NO_PAD).encode(&bytes);
    let own = (before * 8).div_ceil(BITS)..bytes.len() * 8 / BITS;
    encoded.get(own).unwrap_or_default().to_owned()
}

fn url_encoded(text: &str) -> String {
    let encode = |byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

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
        for form in forms_of(SECRET) {
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
    fn the_oldest_secrets_are_forgotten_first() {
        let redactor = Redactor::default();
        for number in 0..=MAX_SECRETS {
            redactor.learn("p", [format!("secret-{number:06}").as_str()]);
        }
        assert_eq!(
            redactor.clean("secret-000000 secret-000001"),
            "secret-000000 [redacted: profile p]"
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
