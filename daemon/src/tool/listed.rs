//! Lists of paths as the model gets them: newest first, a thousand at most, one a line.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::target::walk::{Found, FoundKind, Walked};

/// Entries the model gets from one call.
const ENTRIES_LIMIT: usize = 1_000;

/// Bytes of a list; long paths reach it before the entries do.
const OUTPUT_LIMIT_BYTES: usize = 50_000;

/// Entries collected before a list is cut, so that "newest" is told of a bounded number.
const COLLECTED_LIMIT: usize = 50_000;

/// Paths that were found.
#[derive(Debug, Default)]
pub(super) struct Paths {
    found: Vec<(SystemTime, PathBuf, FoundKind)>,
}

impl Paths {
    /// Adds a path; breaks when no more are taken.
    pub(super) fn push(&mut self, found: Found) -> ControlFlow<()> {
        self.found.push((found.modified, found.name, found.kind));
        if self.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn is_full(&self) -> bool {
        self.found.len() >= COLLECTED_LIMIT
    }

    /// The newest of them, and last lines that say what is not among them.
    pub(super) fn shown(mut self, walked: &Walked) -> String {
        self.found
            .sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        let mut text = String::new();
        let mut count = 0;
        for (_, path, kind) in self.found.iter().take(ENTRIES_LIMIT) {
            let mark = match kind {
                FoundKind::Directory => "/",
                FoundKind::Link => "@",
                FoundKind::File => "",
            };
            // A name may hold anything, also a line end, and must not pass for two.
            let line = format!("{}{mark}\n", path.display().to_string().replace('\n', "\\n"));
            if text.len() + line.len() > OUTPUT_LIMIT_BYTES {
                break;
            }
            text.push_str(&line);
            count += 1;
        }
        if count < self.found.len() {
            let more = if self.is_full() { "more than " } else { "" };
            text.push_str(&format!(
                "[{count} of {more}{} entries, the newest]\n",
                self.found.len()
            ));
        }
        text.push_str(&crowded(walked));
        text
    }
}

/// A line about the directory that a walk did not see all of.
pub(super) fn crowded(walked: &Walked) -> String {
    walked.crowded.as_ref().map_or_else(String::new, |dir| {
        let name = if dir.as_os_str().is_empty() {
            Path::new(".")
        } else {
            dir
        };
        let name = name.display().to_string().replace('\n', "\\n");
        format!("[{name} has too many entries to look at all of them; use a command]\n")
    })
}
