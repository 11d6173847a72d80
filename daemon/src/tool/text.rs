//! Files as text: what kind of file it is, and its encoding, line ends and byte order mark, which a change must keep.

use super::charset::Charset;

/// Bytes looked at to tell text from other files.
pub(crate) const SNIFF_BYTES: usize = 8192;

const BOM: &str = "\u{feff}";

/// The text of a file, with `\n` as line end where the file uses one kind throughout, and without a byte order mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) content: String,
    pub(crate) form: Form,
}

/// How a text is written to its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) line_ends: LineEnds,
    pub(crate) mark: Mark,
    pub(crate) charset: Charset,
}

/// What ends a line in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LineEnds {
    /// `\n`, or both kinds mixed, which are then kept one by one.
    #[default]
    AsIs,
    /// `\r\n` throughout.
    CrLf,
}

/// Whether a file in UTF-8 begins with a byte order mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    #[default]
    None,
    Utf8,
}

/// What a file is, as far as the file tools care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, as far as was looked.
    Text,
    /// Text in UTF-16, of which every second byte may be zero.
    Utf16,
    /// An image models take, with its media type.
    Image(&'static str),
    /// Something else; the text says what, to go after "is".
    Other(&'static str),
}

impl Kind {
    /// Judges by the first [`SNIFF_BYTES`] of a file.
    pub(crate) fn of(beginning: &[u8]) -> Self {
        let begins = |magic: &[u8]| beginning.starts_with(magic);
        if begins(b"\x89PNG\r\n\x1a\n") {
            return Self::Image("image/png");
        }
        if begins(b"\xff\xd8\xff") {
            return Self::Image("image/jpeg");
        }
        if begins(b"GIF87a") || begins(b"GIF89a") {
            return Self::Image("image/gif");
        }
        if begins(b"RIFF") && beginning.get(8..12) == Some(b"WEBP") {
            return Self::Image("image/webp");
        }
        if begins(b"%PDF-") {
            return Self::Other("a PDF document, not text; extract its text by a command");
        }
        if Charset::utf16(beginning).is_some() {
            return Self::Utf16;
        }
        if beginning.iter().take(SNIFF_BYTES).any(|byte| *byte == 0) {
            return Self::Other("a binary file, not text");
        }
        Self::Text
    }
}

/// The text of a whole file, or what it is instead, to go after "is".
pub(crate) fn read(bytes: &[u8]) -> Result<Text, String> {
    match Kind::of(bytes) {
        Kind::Text | Kind::Utf16 => {}
        Kind::Image(_) => return Err("an image, not text".into()),
        Kind::Other(what) => return Err(what.into()),
    }
    let (charset, content) = match std::str::from_utf8(bytes) {
        Ok(content) => (Charset::Utf8, content.to_owned()),
        Err(error) => Charset::decode(bytes).ok_or_else(|| not_utf8(bytes, error.valid_up_to()))?,
    };
    let (mark, content) = match content.strip_prefix(BOM) {
        Some(rest) if charset == Charset::Utf8 => (Mark::Utf8, rest),
        _ => (Mark::None, content.as_str()),
    };
    let (line_ends, content) = match line_ends_of(content) {
        LineEnds::CrLf => (LineEnds::CrLf, content.replace("\r\n", "\n")),
        LineEnds::AsIs => (LineEnds::AsIs, content.to_string()),
    };
    let form = Form {
        line_ends,
        mark,
        charset,
    };
    Ok(Text { content, form })
}

impl Form {
    /// The bytes of a file with this content. Line ends the model wrote differently become the file's own.
    ///
    /// # Errors
    /// The file's encoding lacks a character; a sentence says which.
    pub(crate) fn write(self, content: &str) -> Result<Vec<u8>, String> {
        let content = content.strip_prefix(BOM).unwrap_or(content);
        let content = match self.line_ends {
            LineEnds::AsIs => content.to_owned(),
            LineEnds::CrLf => content.replace("\r\n", "\n").replace('\n', "\r\n"),
        };
        let mut bytes = match self.mark {
            Mark::Utf8 => BOM.as_bytes().to_vec(),
            Mark::None => Vec::new(),
        };
        let name = self.charset.name();
        let lacks = |missing| format!("holds {missing:?}, which the file's encoding, {name}, does not have");
        bytes.extend(self.charset.encode(&content).map_err(lacks)?);
        Ok(bytes)
    }
}

fn line_ends_of(content: &str) -> LineEnds {
    let pairs = content.matches("\r\n").count();
    let singles = |c| content.matches(c).count();
    if pairs > 0 && singles('\n') == pairs && singles('\r') == pairs {
        LineEnds::CrLf
    } else {
        LineEnds::AsIs
    }
}

/// Where a file stops being UTF-8, to go after "is".
pub(crate) fn not_utf8(bytes: &[u8], at: usize) -> String {
    let line = bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    let byte = bytes.get(at).copied().unwrap_or_default();
    format!("not UTF-8 (byte 0x{byte:02x} in line {line}); convert it with `iconv` by a command")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(Kind::of(b"\x89PNG\r\n\x1a\n...."), Kind::Image("image/png"));
        assert_eq!(Kind::of(b"RIFF....WEBPVP8 "), Kind::Image("image/webp"));
        assert!(matches!(Kind::of(b"ab\0cd"), Kind::Other(what) if what.contains("binary")));
        assert_eq!(Kind::of(b"\xff\xfea\0"), Kind::Utf16);
        assert_eq!(Kind::of("käse".as_bytes()), Kind::Text);
    }

    #[test]
    fn a_file_that_is_not_utf8_is_refused_with_the_place() {
        assert_eq!(
            read(b"one\ntwo \xe9 k\xc3\xa4se\n"),
            Err("not UTF-8 (byte 0xe9 in line 2); convert it with `iconv` by a command".into())
        );
    }

    #[test]
    fn other_encodings_are_read_and_written_back() -> Result<(), String> {
        let text = read(b"one\r\ncaf\xe9 \x80\r\n")?;
        assert_eq!(text.content, "one\ncafé €\n");
        assert_eq!(text.form.write("two\ncafé €\n")?, b"two\r\ncaf\xe9 \x80\r\n");
        let lacks = text.form.write("→");
        assert!(lacks.is_err_and(|why| why.contains("'→'") && why.contains("Latin-1")));
        let text = read(b"\xfe\xff\0a\0\r\0\n\0\xe4")?;
        assert_eq!(text.content, "a\r\nä".replace("\r\n", "\n"));
        assert_eq!(text.form.write("b\nä")?, b"\xfe\xff\0b\0\r\0\n\0\xe4");
        Ok(())
    }

    #[test]
    fn line_ends_and_mark_survive_a_change() -> Result<(), String> {
        let text = read("\u{feff}a\r\nb\r\n".as_bytes())?;
        assert_eq!(text.content, "a\nb\n");
        assert_eq!(text.form.write("a\nc\r\n")?, "\u{feff}a\r\nc\r\n".as_bytes());
        Ok(())
    }

    proptest! {
        #[test]
        fn an_unchanged_text_is_written_as_it_was_read(content in "(\u{feff})?([a\u{e4}\r\n]|\r\n){0,30}") {
            if let Ok(text) = read(content.as_bytes()) {
                // A second mark is content, and only the first is the file's.
                prop_assume!(!text.content.starts_with(BOM));
                prop_assert_eq!(text.form.write(&text.content), Ok(content.into_bytes()));
            }
        }
    }
}
