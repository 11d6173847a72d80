//! The unified diff of a file change, as approvals and clients show it.

use std::time::Duration;

use similar::TextDiff;

/// How long the smallest diff is looked for; after that a correct but longer one does.
const SEARCH_LIMIT: Duration = Duration::from_millis(500);

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// A diff and its size in lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) text: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

impl Diff {
    /// From `old` (none: a new file) to `new`, named `name`. Empty if nothing changes.
    pub(crate) fn new(name: &str, old: Option<&str>, new: &str) -> Self {
        let before = old.map_or_else(|| "/dev/null".to_string(), |_| format!("a/{name}"));
        let diff = TextDiff::configure()
            .timeout(SEARCH_LIMIT)
            .diff_lines(old.unwrap_or_default(), new);
        let text = diff
            .unified_diff()
            .context_radius(CONTEXT_LINES)
            .header(&before, &format!("b/{name}"))
            .to_string();
        let count = |sign: char| text.lines().skip(2).filter(|line| line.starts_with(sign)).count();
        Self {
            added: count('+'),
            removed: count('-'),
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_its_surroundings_and_counts_its_lines() {
        let diff = Diff::new("x.txt", Some("1\n2\n3\n4\n5\n6\n"), "1\n2\n3\n4\nfive\n6\n7");
        assert_eq!(
            diff.text,
            "--- a/x.txt\n+++ b/x.txt\n@@ -2,5 +2,6 @@\n 2\n 3\n 4\n-5\n+five\n 6\n+7\n\\ No newline at end of file\n"
        );
        assert_eq!((diff.added, diff.removed), (2, 1));
    }

    #[test]
    fn a_new_file_comes_from_nowhere_and_no_change_is_no_diff() {
        assert!(Diff::new("x", None, "a\n").text.starts_with("--- /dev/null\n+++ b/x\n"));
        assert_eq!(Diff::new("x", Some("a\n"), "a\n"), Diff::default());
    }
}
