//! Shell patterns (`*`, `?`, `[…]`) matched against names, without looking at a file system.

/// Whether `text` as a whole matches `pattern`. A `/` is an ordinary character; callers split paths first.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    matches_chars(&pattern, &text)
}

/// Linear in practice: only the last star is ever tried again.
fn matches_chars(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&'*') {
            retry = Some((at, seen));
            at += 1;
            continue;
        }
        let next = text.get(seen).and_then(|c| one(pattern, at, *c));
        match (next, retry) {
            (Some(next), _) => {
                at = next;
                seen += 1;
            }
            (None, Some((star, from))) => {
                retry = Some((star, from + 1));
                at = star + 1;
                seen = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|c| *c == '*')
}

/// Position after the pattern element at `at` if it matches `c`.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => match bracket(pattern, at, c) {
            Some((end, hit)) => hit.then_some(end),
            None => (c == '[').then_some(at + 1),
        },
        literal => (*literal == c).then_some(at + 1),
    }
}

/// The position after a bracket expression and whether it holds `c`; none if the bracket is not closed.
fn bracket(pattern: &[char], at: usize, c: char) -> Option<(usize, bool)> {
    let mut i = at + 1;
    let negated = matches!(pattern.get(i), Some('!' | '^'));
    if negated {
        i += 1;
    }
    let first = i;
    let mut hit = false;
    loop {
        let low = *pattern.get(i)?;
        if low == ']' && i > first {
            return Some((i + 1, hit != negated));
        }
        match (pattern.get(i + 1), pattern.get(i + 2)) {
            (Some('-'), Some(high)) if *high != ']' => {
                hit |= (low..=*high).contains(&c);
                i += 3;
            }
            _ => {
                hit |= low == c;
                i += 1;
            }
        }
    }
}

/// Whether unquoted text is a pattern.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
        || text
            .find('[')
            .is_some_and(|open| text.get(open + 1..).is_some_and(|rest| rest.contains(']')))
}

/// Whether a path component is a pattern for "whatever there is" (`*`, `.*`, `?*`, `.[!.]*`).
pub(super) fn is_everything(component: &str) -> bool {
    component.contains('*')
        && component
            .chars()
            .all(|c| matches!(c, '*' | '?' | '.' | '[' | ']' | '!' | '^'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_the_shell() {
        for (pattern, text) in [
            ("*", ""),
            ("e*", "etc"),
            ("?tc", "etc"),
            ("[a-f]tc", "etc"),
            ("[!x]tc", "etc"),
            ("a*b*c", "aXbYc"),
            ("[", "["),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("e*", "var"), ("?", ""), ("[!e]tc", "etc"), ("a*b", "abc"), ("", "x")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
