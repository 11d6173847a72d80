//! In which characters a text file is written. Each is decoded only where it can be written back byte by byte, so that a
//! change of one line leaves the others as they are.

use encoding_rs::WINDOWS_1252;

/// What stands at the beginning of UTF-16, low byte first or high byte first.
const UTF16_LE: &[u8] = b"\xff\xfe";
const UTF16_BE: &[u8] = b"\xfe\xff";

/// The encoding of a file's characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Charset {
    #[default]
    Utf8,
    /// Low byte first, with its mark.
    Utf16Le,
    /// High byte first, with its mark.
    Utf16Be,
    /// One byte a character, of which Latin-1 is the part that text uses: the usual one where a file is not Unicode.
    Windows1252,
}

impl Charset {
    /// As people call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le | Self::Utf16Be => "UTF-16",
            Self::Windows1252 => "Windows-1252 (Latin-1)",
        }
    }

    /// UTF-16, if a file that begins like this says it is.
    pub(crate) fn utf16(beginning: &[u8]) -> Option<Self> {
        match beginning.get(..2)? {
            UTF16_LE => Some(Self::Utf16Le),
            UTF16_BE => Some(Self::Utf16Be),
            _ => None,
        }
    }

    /// The text of a file that is no UTF-8, without a mark; none if it could not be written back exactly.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, String)> {
        let charset = Self::utf16(bytes).unwrap_or(Self::Windows1252);
        let content = match charset {
            Self::Windows1252 if is_single_byte_text(bytes) => {
                WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()
            }
            Self::Utf16Le => utf16(bytes, u16::from_le_bytes)?,
            Self::Utf16Be => utf16(bytes, u16::from_be_bytes)?,
            Self::Windows1252 | Self::Utf8 => return None,
        };
        let is_exact = charset.encode(&content).is_ok_and(|written| written == bytes);
        is_exact.then_some((charset, content))
    }

    /// The bytes of `content`, with the mark that belongs to UTF-16.
    ///
    /// # Errors
    /// With the first character that cannot be written.
    pub(crate) fn encode(self, content: &str) -> Result<Vec<u8>, char> {
        let units = content.encode_utf16();
        match self {
            Self::Utf8 => Ok(content.as_bytes().to_vec()),
            Self::Utf16Le => Ok(UTF16_LE
                .iter()
                .copied()
                .chain(units.flat_map(u16::to_le_bytes))
                .collect()),
            Self::Utf16Be => Ok(UTF16_BE
                .iter()
                .copied()
                .chain(units.flat_map(u16::to_be_bytes))
                .collect()),
            Self::Windows1252 => {
                let (bytes, _, unwritable) = WINDOWS_1252.encode(content);
                match content.chars().find(|c| unwritable && !has(*c)) {
                    Some(missing) => Err(missing),
                    None => Ok(bytes.into_owned()),
                }
            }
        }
    }
}

/// Whether one byte can stand for this character.
fn has(c: char) -> bool {
    !WINDOWS_1252.encode(c.encode_utf8(&mut [0; 4])).2
}

/// Whether bytes that are no UTF-8 may be one character each. What is UTF-8 in some places is rather damaged, and what holds
/// control characters is no text.
fn is_single_byte_text(bytes: &[u8]) -> bool {
    let is_text = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\n' | b'\r' | b'\t' | b'\x0c' | b'\x1b');
    bytes.iter().all(is_text) && bytes.utf8_chunks().all(|chunk| chunk.valid().is_ascii())
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.get(2..)?.as_chunks::<2>();
    let content: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    content
        .ok()
        .filter(|content| rest.is_empty() && !content.contains('\0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_damaged_or_no_text_is_not_decoded() {
        for bytes in [
            &b"\xff\xfea"[..],
            b"\xff\xfe\x00\xd8a\0",
            b"\xff\xfea\0\0\0",
            b"caf\xe9\x01",
            b"caf\xe9 k\xc3\xa4se",
            b"ab\0\xe9",
        ] {
            assert_eq!(Charset::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_character_that_has_no_byte_is_named() {
        assert_eq!(Charset::Windows1252.encode("é → 1"), Err('→'));
        assert_eq!(Charset::Windows1252.encode("é €"), Ok(b"\xe9 \x80".to_vec()));
        assert_eq!(Charset::Utf16Be.encode("a"), Ok(b"\xfe\xff\0a".to_vec()));
    }

    proptest! {
        #[test]
        fn whatever_is_decoded_is_written_back_as_it_was(mark in "|le|be", bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mark: &[u8] = match mark.as_str() { "le" => UTF16_LE, "be" => UTF16_BE, _ => b"" };
            let bytes = [mark, &bytes].concat();
            if let Some((charset, content)) = Charset::decode(&bytes) {
                prop_assert_eq!(charset.encode(&content), Ok(bytes));
            }
        }
    }
}
