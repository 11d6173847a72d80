//! The one rule for long output: the model gets the first and the last part with a line between that says what was cut,
//! clients get up to a megabyte, memory stays bounded however much comes.

use protocol::event::Produced;
use std::collections::VecDeque;

/// Bytes of a command's output the model sees.
pub const MODEL_LIMIT_BYTES: usize = 30_000;

/// Bytes of an output kept for clients.
pub const WHOLE_LIMIT_BYTES: usize = 1024 * 1024;

/// Each half of what is kept: the beginning says what was done, the end how it went.
const HALF_BYTES: usize = WHOLE_LIMIT_BYTES / 2;

/// Output as it comes, its beginning and its end kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    head: String,
    tail: VecDeque<u8>,
    total: u64,
    /// Line ends in all of it.
    line_ends: u64,
    /// Whether text came after the last of them.
    line_is_open: bool,
}

impl Kept {
    /// Adds the next piece.
    pub(crate) fn push(&mut self, text: &str) {
        self.total += text.len() as u64;
        self.line_ends += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.line_is_open = text.bytes().next_back().map_or(self.line_is_open, |last| last != b'\n');
        let room = if self.tail.is_empty() {
            HALF_BYTES.saturating_sub(self.head.len())
        } else {
            0
        };
        let (first, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(first);
        let rest = rest.as_bytes();
        let rest = rest.get(rest.len().saturating_sub(HALF_BYTES)..).unwrap_or(rest);
        let overflow = (self.tail.len() + rest.len()).saturating_sub(HALF_BYTES);
        self.tail.drain(..overflow.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// Bytes dropped from the middle.
    pub(crate) fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// How much came in all, of which `shown` stands at the beginning of an output.
    pub(crate) fn produced(&self, shown: &str) -> Produced {
        Produced {
            lines: self.line_ends + u64::from(self.line_is_open),
            bytes: self.total,
            start: 0,
            end: shown.len() as u64,
        }
    }

    /// What the model sees.
    pub(crate) fn for_model(&mut self) -> String {
        if self.total <= MODEL_LIMIT_BYTES as u64 {
            return self.joined("");
        }
        let total = self.total;
        let text = self.joined("");
        let (head, tail) = ends(&text, MODEL_LIMIT_BYTES);
        let shown = (head.len() + tail.len()) as u64;
        format!("{head}{}{tail}", cut_line(head, total - shown, total))
    }

    /// What clients can open, if it is more than the model sees.
    pub(crate) fn whole(&mut self) -> Option<Vec<u8>> {
        if self.total <= MODEL_LIMIT_BYTES as u64 {
            return None;
        }
        let line = match self.dropped() {
            0 => String::new(),
            dropped => cut_line(&self.head, dropped, self.total),
        };
        Some(self.joined(&line).into_bytes())
    }

    /// Head, `between` and tail; the tail from its first whole character on, where its beginning was dropped.
    fn joined(&mut self, between: &str) -> String {
        let tail = self.tail.make_contiguous();
        let broken = tail.iter().take(3).take_while(|byte| (**byte & 0xC0) == 0x80).count();
        let tail = String::from_utf8_lossy(tail.get(broken..).unwrap_or_default());
        [self.head.as_str(), between, &tail].concat()
    }
}

/// The first and last bytes of a text that together fit `limit`, cut at a line's end where one is near.
pub(crate) fn ends(text: &str, limit: usize) -> (&str, &str) {
    let half = limit / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len().saturating_sub(half))..)
        .unwrap_or_default();
    let head = match head.rfind('\n') {
        Some(at) if at >= half - half / 8 => head.get(..=at).unwrap_or(head),
        _ => head,
    };
    let tail = match tail.find('\n') {
        Some(at) if at <= half / 8 => tail.get(at + 1..).unwrap_or(tail),
        _ => tail,
    };
    (head, tail)
}

/// A text of at most about `limit` bytes: itself, or its ends with a line between.
pub(crate) fn bounded(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_string();
    }
    let (head, tail) = ends(text, limit);
    format!(
        "{head}{}{tail}",
        cut_line(head, (text.len() - head.len() - tail.len()) as u64, text.len() as u64)
    )
}

fn cut_line(before: &str, cut: u64, total: u64) -> String {
    let begin = if before.ends_with('\n') || before.is_empty() {
        ""
    } else {
        "\n"
    };
    format!("{begin}[... {cut} of {total} bytes cut here ...]\n")
}

/// Makes text of bytes that come in pieces: a character split between two is put together, what is no UTF-8 becomes
/// U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a character, at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    /// The text of the next piece.
    pub(crate) fn decode(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    break;
                }
                Err(error) => {
                    let (valid, bad) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        self.begun = bad.to_vec();
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = bad.get(length..).unwrap_or_default();
                }
            }
        }
        text
    }

    /// What a character that never was completed becomes.
    pub(crate) fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.begun).is_empty() {
            ""
        } else {
            "\u{fffd}"
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(pieces: &[&str]) -> Kept {
        let mut kept = Kept::default();
        pieces.iter().for_each(|piece| kept.push(piece));
        kept
    }

    #[test]
    fn short_output_is_shown_whole_and_not_kept_twice() {
        let mut kept = kept(&["one\n", "two\n"]);
        assert_eq!(
            (kept.for_model().as_str(), kept.whole(), kept.dropped()),
            ("one\ntwo\n", None, 0)
        );
    }

    #[test]
    fn the_model_sees_both_ends_and_how_much_was_cut() {
        let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
        let mut kept = kept(&[&text]);
        let shown = kept.for_model();
        assert!(shown.len() <= MODEL_LIMIT_BYTES + 100, "{}", shown.len());
        assert!(shown.starts_with("line 0\n") && shown.ends_with("line 19999\n"));
        let cut: usize = shown
            .split("[... ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .unwrap_or(0);
        let line = format!("[... {cut} of {} bytes cut here ...]\n", text.len());
        assert_eq!(shown.len() - line.len() + cut, text.len());
        assert_eq!(kept.whole().as_deref(), Some(text.as_bytes()));
    }

    #[test]
    fn memory_stays_bounded_and_the_last_line_survives() {
        let piece = "0123456789abcde\n".repeat(4096);
        let mut kept = Kept::default();
        for _ in 0..64 {
            kept.push(&piece);
        }
        kept.push("the end\n");
        assert!(kept.head.len() + kept.tail.len() <= WHOLE_LIMIT_BYTES);
        assert_eq!(kept.dropped(), 64 * 65536 + 8 - WHOLE_LIMIT_BYTES as u64);
        assert!(kept.for_model().ends_with("the end\n"));
        let whole = String::from_utf8(kept.whole().unwrap_or_default()).unwrap_or_default();
        assert!(whole.ends_with("the end\n") && whole.contains(" bytes cut here ...]"));
        let produced = kept.produced("");
        assert_eq!((produced.lines, produced.bytes), (64 * 4096 + 1, 64 * 65536 + 8));
    }

    #[test]
    fn a_line_counts_once_in_however_many_pieces_it_comes_and_also_without_its_end() {
        for (pieces, lines) in [
            (&["a", "b\nc\n"][..], 2),
            (&["a\n", "", "b"], 2),
            (&["\n"], 1),
            (&[""], 0),
            (&["a\n", ""], 1),
        ] {
            assert_eq!(kept(pieces).produced("").lines, lines, "{pieces:?}");
        }
    }

    proptest! {
        #[test]
        fn decoding_in_any_pieces_gives_the_same_text(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1_usize..7) {
            let mut decoder = Decoder::default();
            let mut text: String = bytes.chunks(size).map(|piece| decoder.decode(piece)).collect();
            text.push_str(decoder.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn text_in_any_script_is_cut_between_characters(text in "\\PC{0,400}", limit in 8_usize..200) {
            let (head, tail) = ends(&text, limit);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(head.len() + tail.len() <= limit || text.len() <= limit);
        }
    }
}
