//! Base64 that goes over several lines, as `base64` and PEM files break it: looked for in the text without the breaks.
//!
//! A form is also looked for without its first characters, since a break may stand behind any of them. That way the end of a line is
//! held back only if at least [`BEFORE_BREAK`] characters of a form stand before it, and nearly every line is shown at once.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::forms;
use super::known::{Before, Rest};

/// Characters of a form before a break that make what follows be waited for. Fewer of them may be left of a key, which are two bytes.
const BEFORE_BREAK: usize = 3;

/// The forms, and what finds them.
#[derive(Default)]
pub(super) struct Wrapped {
    /// With what stands in their place.
    forms: Vec<(String, String)>,
    finder: Option<AhoCorasick>,
}

/// What is in a text.
pub(super) struct Look<'w> {
    /// Places in the text and their marks, in order and apart from each other.
    pub(super) found: Vec<(Range<usize>, &'w str)>,
    /// Where what may be the beginning of a form starts; the text's length if nothing is.
    pub(super) open: usize,
}

/// A text without the breaks in what may be base64.
struct Joined<'t> {
    text: &'t str,
    before: Before,
    bytes: Vec<u8>,
    /// Where each byte stands in the text.
    at: Vec<usize>,
}

impl Wrapped {
    /// Of secrets with their marks.
    pub(super) fn of(secrets: &[(String, String)]) -> Self {
        let mut all = Vec::new();
        for (mark, secret) in secrets {
            for form in forms::base64(secret) {
                let ends = (0..BEFORE_BREAK).filter_map(|from| form.get(from..).filter(|end| !end.is_empty()));
                all.extend(ends.map(|end| (end.to_owned(), mark.clone())));
            }
        }
        all.sort_unstable();
        all.dedup_by(|one, other| one.0 == other.0);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(all.iter().map(|(form, _)| form))
            .ok()
            .filter(|_| !all.is_empty());
        Self { forms: all, finder }
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.look(text, Before::Other, Rest::Is).found.is_empty()
    }

    pub(super) fn look(&self, text: &str, before: Before, rest: Rest) -> Look<'_> {
        let mut look = Look {
            found: Vec::new(),
            open: text.len(),
        };
        let may_be = before == Before::LineEnd || text.contains('\n');
        let Some(finder) = self.finder.as_ref().filter(|_| may_be) else {
            return look;
        };
        let joined = Joined::of(text, before);
        for found in finder.find_iter(&joined.bytes) {
            let range = joined.range(found.start(), found.end());
            // In one line it is another's to find, and part of a form is none.
            if has_break(text, &range) || joined.begins_line(range.start) {
                let mark = self.forms.get(found.pattern().as_usize()).map_or("", |(_, mark)| mark);
                look.found.push((range, mark));
            }
        }
        if rest == Rest::MayGoOn {
            look.open = self.open_end(&joined);
        }
        look
    }

    fn open_end(&self, joined: &Joined<'_>) -> usize {
        let of_form = |(form, _): &(String, String)| {
            let longest = joined.bytes.len().min(form.len() - 1);
            let begins = |length: &usize| {
                form.as_bytes()
                    .get(..*length)
                    .is_some_and(|begun| joined.bytes.ends_with(begun))
                    && joined.is_open(joined.bytes.len() - length)
            };
            let length = (1..=longest).rev().find(begins)?;
            joined.at.get(joined.bytes.len() - length).copied()
        };
        self.forms.iter().filter_map(of_form).min().unwrap_or(joined.text.len())
    }
}

impl<'t> Joined<'t> {
    fn of(text: &'t str, before: Before) -> Self {
        let (mut bytes, mut at) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
        let mut rest = text.as_bytes().iter().copied().enumerate().peekable();
        while let Some((place, byte)) = rest.next() {
            bytes.push(byte);
            at.push(place);
            if !is_base64(byte) {
                continue;
            }
            // Blanks with a line end among them, and what follows may be base64 again.
            let blanks = text.as_bytes().get(place + 1..).unwrap_or_default();
            let count = blanks.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let breaks = blanks.get(..count).is_some_and(|blanks| blanks.contains(&b'\n'));
            if breaks && blanks.get(count).is_none_or(|next| is_base64(*next)) {
                for _ in 0..count {
                    rest.next();
                }
            }
        }
        Self {
            text,
            before,
            bytes,
            at,
        }
    }

    /// Bytes of this as a place in the text.
    fn range(&self, start: usize, end: usize) -> Range<usize> {
        let place = |index: usize| self.at.get(index).copied().unwrap_or_default();
        place(start)..place(end - 1) + 1
    }

    /// Whether what begins at `start` and goes to the end may be a form whose rest is still to come.
    fn is_open(&self, start: usize) -> bool {
        let Some(place) = self.at.get(start).copied() else {
            return false;
        };
        match self.text.get(place..).and_then(|end| end.find('\n')) {
            // Without a break it is one only behind a break.
            None => self.begins_line(place),
            Some(until) => {
                let before = self.at.iter().skip(start).take_while(|at| **at < place + until).count();
                before >= BEFORE_BREAK || self.begins_line(place)
            }
        }
    }

    /// Whether nothing but blanks stands before `place` in its line, and there is a line before it.
    fn begins_line(&self, place: usize) -> bool {
        self.before.then(self.text.get(..place).unwrap_or_default()) == Before::LineEnd
    }
}

fn has_break(text: &str, range: &Range<usize>) -> bool {
    text.get(range.clone()).is_some_and(|inside| inside.contains('\n'))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
