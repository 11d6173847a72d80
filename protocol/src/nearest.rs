//! The known word that somebody meant.

/// The known word that `word` is a slip of, if one is near enough.
#[must_use]
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let limit = (lower.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (slips(&lower, candidate), *candidate))
        .filter(|(slips, _)| *slips <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to be inserted, removed, replaced, or swapped with their neighbour to make one word of another.
fn slips(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut previous = None;
    for (row, letter) in from.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, wanted) in to.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&last, column) + usize::from(letter != *wanted);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            let neighbour = column.checked_sub(1).and_then(|before| to.get(before));
            if neighbour == Some(&letter) && previous == Some(*wanted) {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_word() {
        let known = ["env", "max_steps", "resume", "unattended"];
        assert_eq!(nearest("max_stpes", &known), Some("max_steps"));
        assert_eq!(nearest("MAX_STEPS", &known), Some("max_steps"));
        assert_eq!(nearest("unatended", &known), Some("unattended"));
        assert_eq!(nearest("evn", &known), Some("env"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn slips_are_counted() {
        for (from, to, count) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "xbz", 2),
        ] {
            assert_eq!(slips(from, to), count, "{from} {to}");
        }
    }
}
