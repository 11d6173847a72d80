//! What the prompt says beyond the built-in text: the project's own instructions, `AGENTS.md` of its root, or `AGENT.md` where that is
//! absent, and the files that are listed. Nothing above the root is looked at, and nothing in the home directory, unless the person
//! lists it. Here is what becomes of the bytes that were found; finding them is the session's.

use super::assemble::hex;
use super::recipe::Owner;
use super::sections;
use super::tokens::of_text;
use sha2::{Digest, Sha256};

/// The project's instructions, and what they are called elsewhere; the first that is there counts.
pub(crate) const NAMES: [&str; 2] = ["AGENTS.md", "AGENT.md"];

/// Bytes that are taken of a file: a tenth of a usual context window, since they go with every model call.
pub(crate) const LIMIT_BYTES: usize = 64 * 1024;

/// Bytes of all of them together, for the same reason.
const TOTAL_BYTES: usize = 4 * LIMIT_BYTES;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instructions {
    /// In the order of the prompt.
    pub(crate) documents: Vec<Document>,
    /// Why a file that is there does not count, or not all of it; sentences for people.
    notices: Vec<String>,
}

/// A piece of the prompt as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    /// The file's name, below the root unless the person listed it elsewhere; with the heading if it is a section alone.
    pub(crate) source: String,
    /// Who says it.
    pub(crate) owner: Owner,
    pub(crate) text: String,
    /// Hex SHA-256 of `text`.
    pub(crate) hash: String,
}

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) source: &'a str,
    pub(crate) owner: Owner,
    /// Its first bytes, one more than [`LIMIT_BYTES`] where it is longer.
    pub(crate) bytes: Vec<u8>,
    /// The heading of the section that is wanted; `None`: all of it. And whether it is told if there is none.
    pub(crate) section: Option<(&'a str, Owner)>,
    /// The headings whose sections are left out, and by whom.
    pub(crate) without: Vec<(&'a str, Owner)>,
}

impl Instructions {
    /// What goes into the prompt of a model with a context of `budget` tokens, and what people are to be told. Half of the context stays
    /// for the work; where that is short, what comes last is left out first.
    pub(crate) fn within(&self, budget: u64) -> (&[Document], Option<String>) {
        let mut tokens = 0;
        let fit = self.documents.iter().take_while(|document| {
            tokens += of_text(&document.text);
            tokens <= budget / 2
        });
        let (said, left_out) = self.documents.split_at(fit.count());
        let names: Vec<&str> = left_out.iter().map(|document| document.source.as_str()).collect();
        let short = format!(
            "left out of the prompt, so that half of the model's context stays free: {}",
            names.join(", ")
        );
        let short = (!names.is_empty()).then_some(&short);
        let notices: Vec<&str> = self.notices.iter().chain(short).map(String::as_str).collect();
        (said, (!notices.is_empty()).then(|| notices.join("\n")))
    }

    /// Adds something people are to be told.
    pub(crate) fn note(&mut self, notice: String) {
        self.notices.push(notice);
    }

    /// Adds what a file says; `clean` takes out what no model may see.
    ///
    /// # Errors
    /// A file that is no text; for people.
    pub(crate) fn add(&mut self, found: Found<'_>, clean: impl FnOnce(&str) -> String) -> Result<(), String> {
        let Found {
            source,
            owner,
            bytes,
            section,
            without,
        } = found;
        let (bytes, cut) = within(bytes);
        let text = String::from_utf8(bytes).map_err(|_| format!("{source} is no UTF-8 text"))?;
        let mut text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned();
        if cut {
            self.note(format!(
                "of {source} only the first {} KiB are read",
                LIMIT_BYTES / 1024
            ));
            text.push_str("\n[The rest of the file is left out.]");
        }
        if let Some((heading, by)) = section {
            text = sections::only(&text, heading).unwrap_or_else(|| {
                self.note_missing(source, "a section that is listed is not there", by);
                String::new()
            });
        }
        for (heading, by) in without {
            match sections::without(&text, heading) {
                Some(rest) => text = rest,
                None => self.note_missing(source, &format!("there is no heading \"{heading}\" to leave out"), by),
            }
        }
        let text = clean(text.trim());
        let used: usize = self.documents.iter().map(|document| document.text.len()).sum();
        if used + text.len() > TOTAL_BYTES {
            let most = TOTAL_BYTES / 1024;
            self.note(format!(
                "{source} is left out: at most {most} KiB of files go into the prompt together"
            ));
        } else if !text.is_empty() {
            self.documents.push(Document {
                source: source.to_owned(),
                owner,
                hash: hex(&Sha256::digest(text.as_bytes())),
                text,
            });
        }
        Ok(())
    }

    /// What the person lists is for all projects, and missing in most; what a project lists is a mistake if it is missing.
    fn note_missing(&mut self, source: &str, what: &str, by: Owner) {
        if by == Owner::Project {
            self.note(format!("{source}: {what}"));
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
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn found(bytes: impl Into<Vec<u8>>) -> Found<'static> {
        Found {
            source: "AGENTS.md",
            owner: Owner::Project,
            bytes: bytes.into(),
            section: None,
            without: Vec::new(),
        }
    }

    fn of(found: Found<'_>) -> Instructions {
        let mut instructions = Instructions::default();
        instructions.add(found, str::to_owned).unwrap();
        instructions
    }

    fn notice(instructions: &Instructions) -> Option<String> {
        instructions.within(u64::MAX).1
    }

    fn text(instructions: &Instructions) -> &str {
        instructions
            .documents
            .first()
            .map_or("", |document| document.text.as_str())
    }

    #[test]
    fn a_file_without_words_says_nothing() {
        assert_eq!(of(found("\u{feff}\n")), Instructions::default());
    }

    #[test]
    fn a_long_file_is_cut_at_a_line_and_says_so_to_the_model_and_the_person() {
        let line = "keep it short, please\n";
        let found = of(found(line.repeat(LIMIT_BYTES / line.len() + 1)));
        let text = text(&found);
        assert!(text.len() < LIMIT_BYTES + 100 && text.ends_with("please\n[The rest of the file is left out.]"));
        assert!(notice(&found).unwrap().contains("64 KiB"));
    }

    #[test]
    fn a_long_file_without_lines_is_cut_between_characters() {
        let found = of(found("ä€".repeat(LIMIT_BYTES)));
        assert!((1..=LIMIT_BYTES + 100).contains(&text(&found).len()));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let refused = Instructions::default().add(found([b'a', 0xff]), str::to_owned);
        assert!(refused.unwrap_err().contains("AGENTS.md"));
    }

    #[test]
    fn sections_are_left_out_or_taken_alone_and_only_a_projects_slip_is_told() {
        let guide = "# Guide\nRead it.\n\n## Release\nTag it.\n";
        let mut whole = found(guide);
        whole.without = vec![("Release", Owner::Person), ("Missing", Owner::Person)];
        let whole = of(whole);
        assert_eq!((text(&whole), notice(&whole)), ("# Guide\nRead it.", None));
        let mut alone = found(guide);
        alone.section = Some(("release", Owner::Project));
        alone.without = vec![("Missing", Owner::Project)];
        let alone = of(alone);
        assert_eq!(text(&alone), "## Release\nTag it.");
        assert!(notice(&alone).unwrap().contains("no heading \"Missing\""));
        let mut none = found(guide);
        none.section = Some(("Nowhere", Owner::Project));
        let none = of(none);
        assert!(none.documents.is_empty() && notice(&none).is_some());
    }

    #[test]
    fn where_the_context_is_short_what_comes_last_is_left_out_first() {
        let mut all = Instructions::default();
        for (source, length) in [("a", 400), ("b", 4_000), ("c", 40)] {
            let bytes = "x".repeat(length).into_bytes();
            let piece = Found {
                source,
                bytes,
                ..found("")
            };
            all.add(piece, str::to_owned).unwrap();
        }
        let within = |budget| {
            let (documents, notice) = all.within(budget);
            let sources: Vec<_> = documents.iter().map(|document| document.source.clone()).collect();
            (sources.concat(), notice.unwrap_or_default())
        };
        assert_eq!(within(2_220), ("abc".to_owned(), String::new()));
        let (said, told) = within(2_200);
        assert!(said == "ab" && told.ends_with(": c"), "{told}");
        let (said, told) = within(1_000);
        assert!(said == "a" && told.ends_with(": b, c"), "{told}");
        assert_eq!(within(10).0, "");
    }

    #[test]
    fn all_files_together_are_bounded() {
        let mut all = Instructions::default();
        for _ in 0..=TOTAL_BYTES / LIMIT_BYTES {
            all.add(found("x".repeat(LIMIT_BYTES)), str::to_owned).unwrap();
        }
        assert_eq!(all.documents.len(), TOTAL_BYTES / LIMIT_BYTES);
        assert!(notice(&all).unwrap().contains("left out: at most 256 KiB"));
    }
}
