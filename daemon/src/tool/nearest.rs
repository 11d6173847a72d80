//! When a text to be replaced is not in a file: what comes nearest to it, so that the model can see its mistake.

use similar::TextDiff;

/// Lines of the file that are compared; in a longer one a guess would take longer than reading it again.
const LINES_LIMIT: usize = 20_000;

/// Lines shown.
const SHOWN_LIMIT: usize = 12;

/// Bytes of a line that are compared and shown.
const LINE_LIMIT_BYTES: usize = 300;

/// Lines compared letter by letter, once none is equal but for white space.
const LETTERS_LIMIT: usize = 2_000;

/// How alike two lines must be to be called near, from 0 to 1.
const NEAR: f32 = 0.5;

/// A text to go after "0 matches in FILE", empty if nothing comes near.
pub(super) fn hint(content: &str, old: &str) -> String {
    if looks_numbered(old) {
        return "; `old` seems to begin with line numbers, which are not part of the file".into();
    }
    let lines: Vec<&str> = content.lines().take(LINES_LIMIT).collect();
    let wanted: Vec<&str> = old.lines().collect();
    let Some(found) = place(&lines, &wanted) else {
        return String::new();
    };
    let shown = lines
        .iter()
        .enumerate()
        .skip(found.at)
        .take(wanted.len().clamp(1, SHOWN_LIMIT));
    let shown: String = shown
        .map(|(index, line)| format!("{:>6}\t{}\n", index + 1, start_of(line)))
        .collect();
    format!("; {}:\n{shown}", found.how)
}

struct Found {
    at: usize,
    how: &'static str,
}

fn place(lines: &[&str], wanted: &[&str]) -> Option<Found> {
    let alike = |at: usize| {
        let pairs = wanted.iter().zip(lines.iter().skip(at));
        pairs
            .filter(|(wanted, line)| !wanted.trim().is_empty() && squeezed(wanted) == squeezed(line))
            .count()
    };
    let full = wanted.iter().filter(|line| !line.trim().is_empty()).count();
    let best = (0..lines.len())
        .map(|at| (alike(at), at))
        .max_by_key(|(count, at)| (*count, std::cmp::Reverse(*at)))?;
    match best {
        (0, _) => nearest_line(lines, wanted).map(|at| Found {
            at,
            how: "the nearest text is",
        }),
        (count, at) if count == full => Some(Found {
            at,
            how: "the text at this place differs only in white space",
        }),
        (_, at) => Some(Found {
            at,
            how: "the nearest text is",
        }),
    }
}

/// The line most like the first line of what was wanted.
fn nearest_line(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let first = start_of(wanted.iter().find(|line| !line.trim().is_empty())?.trim());
    let ratio = |line: &str| TextDiff::from_chars(first, start_of(line.trim())).ratio();
    let rated = lines
        .iter()
        .take(LETTERS_LIMIT)
        .enumerate()
        .map(|(at, line)| (ratio(line), at));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 >= NEAR).then_some(best.1)
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect()
}

fn start_of(line: &str) -> &str {
    line.get(..line.floor_char_boundary(LINE_LIMIT_BYTES)).unwrap_or(line)
}

/// Every line begins like the output of `read_file`.
fn looks_numbered(old: &str) -> bool {
    let numbered = |line: &str| {
        line.split_once('\t')
            .is_some_and(|(number, _)| number.trim().parse::<u32>().is_ok() && number.starts_with(' '))
    };
    !old.is_empty() && old.lines().all(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_in_white_space_is_named_as_such() {
        let hint = hint("a\n  b  c\nd\n", "b c\nd");
        assert_eq!(
            hint,
            "; the text at this place differs only in white space:\n     2\t  b  c\n     3\td\n"
        );
    }

    #[test]
    fn a_similar_line_is_found_and_an_alien_text_finds_nothing() {
        assert!(hint("alpha\nlet total = sum(values);\n", "let totals = sum(value);").contains("     2\tlet total"));
        assert_eq!(hint("alpha\nbeta\n", "0123456789"), "");
        assert_eq!(hint("", "x"), "");
    }

    #[test]
    fn line_numbers_copied_from_a_listing_are_recognised() {
        assert!(hint("a\nb\n", "     1\ta\n     2\tb").contains("line numbers"));
    }
}
