//! Backslash escapes of `$'…'`, `echo -e` and `printf`, and the text `printf` prints for literal arguments.

/// Decodes the inside of `$'…'`, `echo -e` or a `printf` format. Unknown escapes stay as they are.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = chars.next() else {
            out.push('\\');
            break;
        };
        match kind {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'e' | 'E' => out.push('\u{1b}'),
            'f' => out.push('\u{c}'),
            'v' => out.push('\u{b}'),
            '\\' | '\'' | '"' | '?' => out.push(kind),
            'x' => push_code(&mut out, &mut chars, 16, 2, ""),
            'u' => push_code(&mut out, &mut chars, 16, 4, ""),
            'U' => push_code(&mut out, &mut chars, 16, 8, ""),
            'c' => {
                if let Some(letter) = chars.next() {
                    out.push(char::from((letter as u32 & 0x1f) as u8));
                }
            }
            '0'..='7' => push_code(&mut out, &mut chars, 8, 3, &kind.to_string()),
            other => out.extend(['\\', other]),
        }
    }
    out
}

/// Reads up to `digits` digits after `start` and pushes the character they name.
fn push_code(
    out: &mut String,
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    digits: usize,
    start: &str,
) {
    let mut number = start.to_owned();
    // An octal escape with a leading zero has one digit more in `echo` and `printf`.
    let limit = if start == "0" { digits + 1 } else { digits };
    while number.len() < limit {
        let Some(digit) = chars.next_if(|c| c.is_digit(radix)) else {
            break;
        };
        number.push(digit);
    }
    if let Some(c) = u32::from_str_radix(&number, radix).ok().and_then(char::from_u32) {
        out.push(c);
    }
}

/// Longest text worth guessing; more is not a command somebody spelled out.
const OUTPUT_LIMIT: usize = 16 * 1024;

/// What `printf FORMAT WORDS…` prints.
pub(super) fn printf(format: &str, words: &[&str]) -> String {
    let format = decode(format);
    let mut out = String::new();
    let mut words = words.iter();
    loop {
        let before = words.len();
        print_once(&format, &mut words, &mut out);
        if words.len() == 0 || words.len() == before || out.len() > OUTPUT_LIMIT {
            return out;
        }
    }
}

fn print_once(format: &str, words: &mut std::slice::Iter<'_, &str>, out: &mut String) {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let conversion = chars.find(|c| c.is_ascii_alphabetic() || *c == '%');
        match conversion {
            Some('%') | None => out.push('%'),
            Some('b') => out.push_str(&decode(words.next().copied().unwrap_or_default())),
            Some(_) => out.push_str(words.next().copied().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_name_the_characters_bash_makes_of_them() {
        assert_eq!(decode(r"\x72m"), "rm");
        assert_eq!(decode(r"\162m"), "rm");
        assert_eq!(decode(r"\u0072\U0000006d"), "rm");
        assert_eq!(decode(r"a\nb\q"), "a\nb\\q");
    }

    #[test]
    fn printf_repeats_its_format() {
        assert_eq!(printf("%s ", &["rm", "-rf", "/"]), "rm -rf / ");
        assert_eq!(printf(r"\162%s", &["m"]), "rm");
        assert_eq!(printf("x", &["y"]), "x");
    }
}
