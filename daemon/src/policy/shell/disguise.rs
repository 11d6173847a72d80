//! Text that may look like something else to the person who is asked: characters that do not show, long runs of blanks, and words of
//! letters that look alike in several scripts.

use unicode_security::MixedScript;

/// Blanks in a row from which on something may be hidden behind them.
const BLANKS_LIMIT: usize = 40;

/// Characters of the text before a hidden one that say where it is.
const BEFORE: usize = 16;

/// Why the text may look like something else to a person.
pub(super) fn of(text: &str) -> Option<String> {
    if let Some((at, c)) = text.char_indices().find(|(_, c)| is_hidden(*c)) {
        let before: Vec<char> = text.get(..at)?.chars().rev().take(BEFORE).collect();
        let before: String = before.into_iter().rev().collect();
        let before = before.rsplit('\n').next().unwrap_or_default();
        return Some(format!(
            "It holds a character that does not show or changes how it looks, U+{:04X} after `{before}`.",
            u32::from(c)
        ));
    }
    let mut run = 0;
    for c in text.chars() {
        run = if c == ' ' || c == '\t' { run + 1 } else { 0 };
        if run > BLANKS_LIMIT {
            return Some("It holds a long run of blanks that may hide something.".to_owned());
        }
    }
    mixed(text)
}

/// The first word whose letters are of several scripts, such as `curl` with a Cyrillic first letter. Scripts that are written
/// together, such as those of Japanese, are one; a word ends where its letters end, so `файл.rs` is two.
pub(super) fn mixed(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let is_part = |c: char| c.is_alphanumeric() || (!c.is_ascii() && !c.is_whitespace() && !c.is_control());
    let word = text
        .split(|c| !is_part(c))
        .find(|word| !word.is_ascii() && !word.is_single_script())?;
    let foreign: Vec<String> = word
        .chars()
        .filter(|c| !c.is_ascii())
        .take(BEFORE)
        .map(|c| format!("U+{:04X}", u32::from(c)))
        .collect();
    Some(format!(
        "The word `{word}` mixes letters of several scripts ({}), so it may not be what it looks like.",
        foreign.join(" ")
    ))
}

fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{a0}' | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_script_are_plain() {
        for text in [
            "curl http://x",
            "echo Füße naïve",
            "cat файл.txt",
            "echo 日本のテキスト",
            "git commit -m 'добавить API'",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn a_word_that_mixes_scripts_is_named_with_its_letters() {
        for (text, word, letter) in [
            ("\u{441}url http://x", "`\u{441}url`", "U+0441"),
            ("ls; /usr/bin/gi\u{442} push", "`gi\u{442}`", "U+0442"),
            ("echo x > sr\u{3f2}/a", "`sr\u{3f2}`", "U+03F2"),
        ] {
            let said = of(text).unwrap_or_default();
            assert!(said.contains(word) && said.contains(letter), "{text}: {said}");
        }
    }

    #[test]
    fn a_character_that_does_not_show_says_where_it_is() {
        let said = of("ls\ncurl\u{a0}x").unwrap_or_default();
        assert!(said.contains("U+00A0 after `curl`"), "{said}");
    }
}
