//! The project's own instructions: `AGENTS.md` of its root, or `AGENT.md` where that is absent. Nothing above the root is looked at,
//! and nothing in the home directory. Here is what becomes of the bytes that were found; finding them is the session's.

use super::assemble::hex;
use sha2::{Digest, Sha256};

/// The file, and what it is called elsewhere; the first that is there counts.
pub(crate) const NAMES: [&str; 2] = ["AGENTS.md", "AGENT.md"];

/// Bytes that are taken of the file: a tenth of a usual context window, since they go with every model call.
pub(crate) const LIMIT_BYTES: usize = 64 * 1024;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub(crate) document: Option<Document>,
    /// Why a file that is there does not count, or not all of it; a sentence for people.
    pub(crate) notice: Option<String>,
}

/// Instructions as the model sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    /// The file's name in the root.
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// Hex SHA-256 of `text`.
    pub(crate) hash: String,
}

impl Instructions {
    /// A file that is there and does not count, for `reason`.
    pub(crate) fn refused(reason: &str) -> Self {
        Self {
            document: None,
            notice: Some(format!("the project's instructions are not read: {reason}")),
        }
    }

    /// From the file's first bytes, one more than [`LIMIT_BYTES`] where it is longer; `clean` takes out what no model may see.
    pub(crate) fn of(name: &'static str, bytes: Vec<u8>, clean: impl FnOnce(&str) -> String) -> Self {
        let (bytes, cut) = within(bytes);
        let Ok(text) = String::from_utf8(bytes) else {
            return Self::refused(&format!("{name} is no UTF-8 text"));
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim();
        if text.is_empty() {
            return Self::default();
        }
        let mut text = clean(text);
        if cut {
            text.push_str("\n[The rest of the file is left out.]");
        }
        let notice = cut.then(|| format!("of {name} only the first {} KiB are read", LIMIT_BYTES / 1024));
        let hash = hex(&Sha256::digest(text.as_bytes()));
        Self {
            document: Some(Document { name, text, hash }),
            notice,
        }
    }
}

/// The bytes within the limit, whole lines where there are any, and whether that is less than there was.
fn within(mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
    if bytes.len() <= LIMIT_BYTES {
        return (bytes, false);
    }
    bytes.truncate(LIMIT_BYTES);
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    // Without a line end, at least no character is cut in two.
    let end = end.unwrap_or_else(|| bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len()));
    bytes.truncate(end);
    (bytes, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: impl Into<Vec<u8>>) -> Instructions {
        Instructions::of("AGENTS.md", bytes.into(), str::to_owned)
    }

    #[test]
    fn a_file_without_words_says_nothing() {
        assert_eq!(of("\u{feff}\n"), Instructions::default());
    }

    #[test]
    fn a_long_file_is_cut_at_a_line_and_says_so_to_the_model_and_the_person() {
        let line = "keep it short, please\n";
        let found = of(line.repeat(LIMIT_BYTES / line.len() + 1));
        let text = found.document.map(|document| document.text).unwrap_or_default();
        assert!(text.len() < LIMIT_BYTES + 100 && text.ends_with("please\n[The rest of the file is left out.]"));
        assert!(found.notice.is_some_and(|notice| notice.contains("64 KiB")));
    }

    #[test]
    fn a_long_file_without_lines_is_cut_between_characters() {
        let found = of("ä€".repeat(LIMIT_BYTES));
        assert!(
            found
                .document
                .is_some_and(|document| document.text.len() <= LIMIT_BYTES + 100)
        );
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let found = of([b'a', 0xff]);
        assert!(found.document.is_none() && found.notice.is_some_and(|notice| notice.contains("AGENTS.md")));
    }
}
