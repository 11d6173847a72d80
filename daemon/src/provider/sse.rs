//! Server-sent events: bytes in any chunking become events.
//!
//! `sseer` splits the lines (LF, CRLF or CR, across chunks, in linear time); this file assembles events from them as the
//! WHATWG text says, with three leniencies providers need: an event without its final blank line is delivered at the end,
//! invalid UTF-8 is replaced rather than fatal, and an event is bounded. Comments give no event; they are bytes, which is
//! all the idle timer looks at.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use sseer::parser::{RawEventLineOwned, parse_line_from_buffer};

/// Largest single event in bytes: room for an image in base64, and no more.
pub const EVENT_LIMIT: usize = 16 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    name: Bytes,
    data: Bytes,
}

impl Event {
    /// The `event:` field; empty when there was none.
    pub fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }

    /// The `data:` lines, joined by LF.
    pub fn data(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.data)
    }
}

/// An event grew past `EVENT_LIMIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the provider sent an event of more than {EVENT_LIMIT} bytes")]
pub struct EventTooLarge;

/// A parser of one stream. Push bytes, then take events until there are none.
#[derive(Debug, Default)]
pub struct Parser {
    buffer: BytesMut,
    /// How far `buffer` was already searched for a line end.
    scanned: usize,
    start: Start,
    name: Bytes,
    data: Data,
}

/// Whether the byte order mark was looked for.
#[derive(Debug, Default, PartialEq, Eq)]
enum Start {
    #[default]
    Unseen,
    Passed,
}

/// The data lines of the open event. Nearly every event has one line, which is kept without copying.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    Line(Bytes),
    Lines(BytesMut),
}

impl Data {
    fn add(&mut self, line: Bytes) {
        *self = match std::mem::take(self) {
            Self::None => Self::Line(line),
            Self::Line(first) => Self::Lines(joined(BytesMut::from(first), &line)),
            Self::Lines(lines) => Self::Lines(joined(lines, &line)),
        };
    }

    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Line(line) => line.len(),
            Self::Lines(lines) => lines.len(),
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        match std::mem::take(self) {
            Self::None => None,
            Self::Line(line) => Some(line),
            Self::Lines(lines) => Some(lines.freeze()),
        }
    }
}

fn joined(mut lines: BytesMut, line: &[u8]) -> BytesMut {
    lines.extend_from_slice(b"\n");
    lines.extend_from_slice(line);
    lines
}

impl Parser {
    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Takes the end of the body: what is still open counts as finished.
    pub fn end(&mut self) {
        self.buffer.extend_from_slice(b"\n\n");
    }

    /// The next whole event, `None` until more bytes come.
    ///
    /// # Errors
    /// When the event being read is larger than `EVENT_LIMIT`; the parser is of no use afterwards.
    pub fn next_event(&mut self) -> Result<Option<Event>, EventTooLarge> {
        if self.start == Start::Unseen && !self.skip_bom() {
            return Ok(None);
        }
        while let Some(line) = parse_line_from_buffer(&mut self.buffer, &mut self.scanned) {
            if let Some(event) = self.line(line) {
                return Ok(Some(event));
            }
            self.check_size(0)?;
        }
        self.check_size(self.buffer.len())?;
        Ok(None)
    }

    /// Whether the start of the stream is decided. A buffer that may yet become a mark is not.
    fn skip_bom(&mut self) -> bool {
        if self.buffer.len() < BOM.len() && BOM.starts_with(&self.buffer) {
            return false;
        }
        if self.buffer.starts_with(BOM) {
            let _mark = self.buffer.split_to(BOM.len());
        }
        self.start = Start::Passed;
        true
    }

    fn line(&mut self, line: RawEventLineOwned) -> Option<Event> {
        match line {
            RawEventLineOwned::Empty => {
                let name = std::mem::take(&mut self.name);
                self.data.take().map(|data| Event { name, data })
            }
            RawEventLineOwned::Field {
                field_name,
                field_value,
            } => {
                match field_name.as_ref() {
                    b"data" => self.data.add(field_value.unwrap_or_default()),
                    b"event" => self.name = field_value.unwrap_or_default(),
                    _ => {}
                }
                None
            }
            RawEventLineOwned::Comment => None,
        }
    }

    fn check_size(&self, unread: usize) -> Result<(), EventTooLarge> {
        if self.data.len() + self.name.len() + unread > EVENT_LIMIT {
            Err(EventTooLarge)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(body: &[u8], chunk: usize) -> Result<Vec<(String, String)>, EventTooLarge> {
        let mut parser = Parser::default();
        let mut out = Vec::new();
        for piece in body.chunks(chunk) {
            parser.push(piece);
            while let Some(event) = parser.next_event()? {
                out.push((event.name().into_owned(), event.data().into_owned()));
            }
        }
        parser.end();
        while let Some(event) = parser.next_event()? {
            out.push((event.name().into_owned(), event.data().into_owned()));
        }
        Ok(out)
    }

    fn expect(body: &str, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
        let wanted: Vec<_> = wanted
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect();
        for chunk in 1..=body.len() {
            assert_eq!(events(body.as_bytes(), chunk)?, wanted, "{body:?} in chunks of {chunk}");
        }
        Ok(())
    }

    #[test]
    fn line_ends_may_be_lf_crlf_or_cr() -> anyhow::Result<()> {
        for end in ["\n", "\r\n", "\r"] {
            let body = "event: a\ndata: 1\n\ndata: 2\ndata:  3\n\n".replace('\n', end);
            expect(&body, &[("a", "1"), ("", "2\n 3")])?;
        }
        Ok(())
    }

    #[test]
    fn comments_unknown_fields_and_empty_events_give_nothing() -> anyhow::Result<()> {
        expect(
            ": hello\n\nid: 1\nretry: 3\nfoo: x\nbar\ndata:x\n\nevent: lost\n\ndata: y\n\n",
            &[("", "x"), ("", "y")],
        )
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() -> anyhow::Result<()> {
        expect("\u{feff}data: ä\u{feff}\n\n", &[("", "ä\u{feff}")])?;
        expect("\u{feff}\u{feff}data: x\n\ndata: y\n\n", &[("", "y")])
    }

    #[test]
    fn the_last_event_needs_no_blank_line() -> anyhow::Result<()> {
        expect("data: 1\n\ndata: 2", &[("", "1"), ("", "2")])?;
        expect("data: 1\n\ndata: 2\r", &[("", "1"), ("", "2")])
    }

    #[test]
    fn characters_split_between_chunks_survive_and_invalid_bytes_are_replaced() -> anyhow::Result<()> {
        expect("data: 日本🙂\n\n", &[("", "日本🙂")])?;
        let got = events(b"data: a\xFFb\n\ndata: c\n\n", 1)?;
        assert_eq!(
            got,
            [
                (String::new(), "a\u{fffd}b".to_owned()),
                (String::new(), "c".to_owned())
            ]
        );
        Ok(())
    }

    #[test]
    fn an_endless_event_is_refused_whether_in_one_line_or_many() {
        let megabyte = vec![b'x'; 1024 * 1024];
        for prefix in [&b""[..], b"\ndata: "] {
            let mut parser = Parser::default();
            parser.push(b"data: ");
            let mut refused = false;
            for _ in 0..18 {
                parser.push(prefix);
                parser.push(&megabyte);
                refused |= parser.next_event().is_err();
            }
            assert!(refused);
        }
    }
}
