//! `jq` filters: any but those that read the environment, modules or other files.

/// Words that reach beyond the input.
const REACHING: &[&str] = &[
    "env",
    "ENV",
    "input_filename",
    "import",
    "include",
    "modulemeta",
    "get_search_list",
    "__prog_args",
];

/// Why a filter should be asked about; none if it only works on its input.
pub(super) fn concern(filter: &str) -> Option<String> {
    let chars: Vec<char> = code_of(filter);
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        if !is_word(*c) {
            at += 1;
            continue;
        }
        let end = chars
            .iter()
            .skip(at)
            .position(|c| !is_word(*c))
            .map_or(chars.len(), |length| at + length);
        let word: String = chars.get(at..end).unwrap_or_default().iter().collect();
        let is_key = at.checked_sub(1).and_then(|before| chars.get(before)) == Some(&'.');
        if REACHING.contains(&word.as_str()) && !is_key {
            return Some("The `jq` filter reads more than its input.".to_owned());
        }
        at = end;
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The filter without its strings; a string that interpolates is code and stays.
fn code_of(filter: &str) -> Vec<char> {
    let mut code = Vec::new();
    let mut chars = filter.chars();
    while let Some(c) = chars.next() {
        if c != '"' {
            code.push(c);
            continue;
        }
        let mut string = Vec::new();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => match chars.next() {
                    // What interpolates may hold quotes of its own: everything from here on counts as code.
                    Some('(') => {
                        code.extend(string);
                        code.push(' ');
                        code.extend(chars);
                        return code;
                    }
                    _ => string.push('_'),
                },
                c => string.push(c),
            }
        }
        code.push('_');
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_on_the_input_are_harmless() {
        for filter in [
            ".",
            ".scripts | keys",
            ".env",
            ".[\"env\"]",
            "map(select(.name == \"include\"))",
            "\"\\(.name)\"",
            ".a.env.b",
        ] {
            assert_eq!(concern(filter), None, "{filter}");
        }
    }

    #[test]
    fn filters_that_reach_further_are_not() {
        for filter in [
            "env",
            "$ENV",
            "env.HOME",
            "input_filename",
            "import \"x\" as x; .",
            "\"\\(env)\"",
            ". | env",
            "\"\\(\"x\")\" | env",
        ] {
            assert!(concern(filter).is_some(), "{filter}");
        }
    }
}
