//! The one way from text that somebody else wrote to a terminal: replies, tool output, commands, paths, names, reasons, errors.
//!
//! What [`display`] returns moves no cursor, hides nothing and reorders nothing: control characters become visible symbols,
//! characters without a shape become `<U+202E>`, as do blanks that are no plain space, which a shell takes for part of a word; long
//! runs of blanks, which push what follows out of sight, become `<4000 spaces>`. Nothing is cut. Plain text is returned as it is, without a copy.

use std::borrow::Cow;
use std::fmt::Write;

/// What the text is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Part of one line, such as a name, a path or a reason: line ends and tabs become visible symbols too.
    Inline,
    /// Lines of their own, such as a command, a diff or an output: line ends and tabs are kept.
    Block,
    /// What a model or a person writes to be read, such as a reply: as a block, but for the blanks of typography, which many
    /// languages use.
    Prose,
}

/// The longest run of blanks that is shown as it is, in characters.
pub const BLANKS_SHOWN: usize = 40;

/// `text` with everything visible that a terminal would act on, hide or reorder.
#[must_use]
pub fn display(text: &str, form: Form) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if bytes.len() <= BLANKS_SHOWN && bytes.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let next = rest.peek().copied();
        if is_blank(character, form) {
            let mut run = String::from(character);
            while let Some(blank) = rest.next_if(|next| is_blank(*next, form)) {
                run.push(blank);
            }
            push_blanks(&mut shown, &run, form);
        } else if let Some(symbol) = control_symbol(character, form) {
            shown.push(symbol);
        } else if is_shapeless(before, character, next) {
            // Writing to a `String` cannot fail.
            let _ = write!(shown, "<U+{:04X}>", u32::from(character));
        } else {
            shown.push(character);
        }
        before = Some(character);
    }
    if shown == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(shown)
    }
}

fn push_blanks(shown: &mut String, run: &str, form: Form) {
    let count = run.chars().count();
    if count > BLANKS_SHOWN {
        let _ = write!(shown, "<{count} spaces>");
        return;
    }
    for blank in run.chars() {
        if form == Form::Prose || matches!(blank, ' ' | '\t') {
            shown.push(blank);
        } else {
            let _ = write!(shown, "<U+{:04X}>", u32::from(blank));
        }
    }
}

/// Characters that take room and show nothing.
fn is_blank(character: char, form: Form) -> bool {
    match character {
        '\t' => form != Form::Inline,
        ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}' => {
            true
        }
        _ => false,
    }
}

/// The picture of a control character of ASCII.
fn control_symbol(character: char, form: Form) -> Option<char> {
    match character {
        '\n' | '\t' if form != Form::Inline => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)),
        '\u{7f}' => Some('␡'),
        _ => None,
    }
}

/// Whether a terminal would show nothing for `character`, act on it, or reorder what stands around it.
fn is_shapeless(before: Option<char>, character: char, next: Option<char>) -> bool {
    match character {
        // One selector after the character it selects for is common; a run of them carries hidden text.
        selector if is_selector(selector) => {
            before.is_none_or(|before| before.is_control() || is_selector(before)) || next.is_some_and(is_selector)
        }
        // The joiner inside an emoji, such as a profession or a family.
        '\u{200d}' => !(before.is_some_and(is_pictograph_part) && next.is_some_and(is_pictograph)),
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => true,
        _ => false,
    }
}

fn is_selector(character: char) -> bool {
    matches!(character, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_pictograph(character: char) -> bool {
    matches!(character, '\u{2190}'..='\u{21ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

fn is_pictograph_part(character: char) -> bool {
    is_pictograph(character) || character == '\u{fe0f}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(text: &str) -> String {
        display(text, Form::Inline).into_owned()
    }

    fn block(text: &str) -> String {
        display(text, Form::Block).into_owned()
    }

    /// What no terminal may ever get, in either form.
    fn has_raw(text: &str, form: Form) -> bool {
        text.chars().any(|character| {
            let kept = form != Form::Inline && matches!(character, '\n' | '\t');
            (character.is_control() && !kept)
                || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
        })
    }

    #[test]
    fn plain_text_is_returned_without_a_copy() {
        for text in [
            "",
            "ls -la",
            "Füße, naïve, 日本語, 👍🏽, e\u{301}, ❤️",
            "a line that is longer than forty characters, in all",
        ] {
            assert!(
                matches!(display(text, Form::Inline), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn c0_and_del_become_symbols() {
        assert_eq!(inline("a\0b\u{7}c\u{8}\rd\u{7f}"), "a␀b␇c␈␍d␡");
        assert_eq!(inline("\u{1b}[2K\u{1b}]52;c;aGk=\u{7}"), "␛[2K␛]52;c;aGk=␇");
    }

    #[test]
    fn newline_and_tab_are_kept_in_a_block_and_visible_inline() {
        assert_eq!(block("a\n\tb"), "a\n\tb");
        assert_eq!(inline("a\n\tb"), "a␊␉b");
    }

    #[test]
    fn a_carriage_return_cannot_overwrite_in_either_form() {
        assert_eq!(block("rm -rf /\rls"), "rm -rf /␍ls");
        assert_eq!(inline("rm -rf /\rls"), "rm -rf /␍ls");
    }

    #[test]
    fn c1_is_visible_although_it_is_valid_utf_8() {
        assert_eq!(inline("\u{9b}2J\u{85}"), "<U+009B>2J<U+0085>");
    }

    #[test]
    fn bidi_controls_are_visible() {
        assert_eq!(inline("a\u{202e}b\u{2066}c\u{2069}"), "a<U+202E>b<U+2066>c<U+2069>");
        assert_eq!(block("\u{200e}\u{200f}\u{61c}"), "<U+200E><U+200F><U+061C>");
    }

    #[test]
    fn zero_width_tags_and_line_separators_are_visible() {
        assert_eq!(
            inline("a\u{200b}b\u{200d}c\u{feff}\u{2060}"),
            "a<U+200B>b<U+200D>c<U+FEFF><U+2060>"
        );
        assert_eq!(inline("\u{e0041}\u{e007f}"), "<U+E0041><U+E007F>");
        assert_eq!(block("\u{2028}\u{2029}"), "<U+2028><U+2029>");
        assert_eq!(inline("\u{3164}\u{ad}"), "<U+3164><U+00AD>");
    }

    #[test]
    fn one_variation_selector_is_kept_and_a_run_is_visible() {
        assert_eq!(inline("❤\u{fe0f} ok"), "❤\u{fe0f} ok");
        assert_eq!(inline("x\u{fe0f}\u{fe01}\u{e0101}"), "x<U+FE0F><U+FE01><U+E0101>");
        assert_eq!(inline("\u{fe0f}"), "<U+FE0F>");
    }

    #[test]
    fn a_joiner_is_kept_inside_an_emoji_alone() {
        let engineer = "👩\u{200d}💻 and ❤\u{fe0f}\u{200d}🔥";
        assert_eq!(inline(engineer), engineer);
        assert_eq!(inline("💻\u{200d}x"), "💻<U+200D>x");
    }

    #[test]
    fn long_runs_of_blanks_are_counted_and_what_follows_is_shown() {
        let text = format!("ls{}; rm -rf /", " ".repeat(4000));
        assert_eq!(inline(&text), "ls<4000 spaces>; rm -rf /");
        assert_eq!(inline(&" ".repeat(40)), " ".repeat(40));
        assert_eq!(inline(&"\u{a0}\u{2003} ".repeat(20)), "<60 spaces>");
        assert_eq!(block(&format!("a{}b", "\t ".repeat(30))), "a<60 spaces>b");
    }

    #[test]
    fn a_blank_that_is_no_space_is_visible_but_in_prose() {
        for (blank, shown) in [
            ('\u{a0}', "<U+00A0>"),
            ('\u{3000}', "<U+3000>"),
            ('\u{202f}', "<U+202F>"),
        ] {
            let text = format!("curl{blank}x");
            assert_eq!(inline(&text), format!("curl{shown}x"));
            assert_eq!(block(&text), format!("curl{shown}x"));
            assert_eq!(display(&text, Form::Prose), text);
        }
        assert_eq!(block("a \tb"), "a \tb");
        assert_eq!(display("a\u{202e}b\u{1b}", Form::Prose), "a<U+202E>b␛");
    }

    #[test]
    fn nothing_is_cut() {
        let text: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
        assert_eq!(block(&text), text);
    }

    #[test]
    fn no_character_that_a_terminal_acts_on_passes() {
        let every: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        for form in [Form::Inline, Form::Block, Form::Prose] {
            assert!(!has_raw(&display(&every, form), form));
        }
        assert!(!has_raw(
            &inline("\u{1b}]8;;https://evil.example\u{1b}\\good\u{1b}]8;;\u{1b}\\"),
            Form::Inline
        ));
    }
}
