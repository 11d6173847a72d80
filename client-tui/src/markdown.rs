//! Markdown, a source line at a time, so that a finished line of a growing reply never changes again: headings, bold, italic,
//! struck out, code spans, links, fenced code, lists, quotes, rules. Whatever is none of these stays as it was written.
//!
//! What it gets is untrusted: each line goes through `display` first.

use crate::paint::{self, Look};
use crate::wrap::wrap;
use protocol::display::{Form, display};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Where in a document the next line stands.
#[derive(Debug, Clone)]
pub(crate) struct Markdown {
    look: Look,
    /// Columns to wrap prose at; code is left to the terminal, so that copying gives back its lines.
    width: Option<u16>,
    fence: Option<Fence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    marker: char,
    length: usize,
}

impl Markdown {
    /// The start of a document.
    pub(crate) fn new(look: Look, width: Option<u16>) -> Self {
        Self {
            look,
            width,
            fence: None,
        }
    }

    /// From here on prose is wrapped at `width`.
    pub(crate) fn set_width(&mut self, width: Option<u16>) {
        self.width = width;
    }

    /// The rows of the next source line, which has no line end.
    pub(crate) fn line(&mut self, source: &str) -> Vec<Line<'static>> {
        let text = display(source, Form::Prose);
        let fence = fence(&text);
        if let Some(open) = self.fence {
            if fence.is_some_and(|close| closes(open, close, &text)) {
                self.fence = None;
                return vec![paint::line(text, paint::dim())];
            }
            return vec![paint::line(text, paint::code())];
        }
        if self.look == Look::Plain {
            return self.wrapped(&Line::from(text.into_owned()), 0);
        }
        if fence.is_some() {
            self.fence = fence;
            return vec![paint::line(text, paint::dim())];
        }
        self.prose(&text)
    }

    fn prose(&self, text: &str) -> Vec<Line<'static>> {
        let body = text.trim_start_matches(' ');
        let indent = text.len() - body.len();
        if let Some(title) = heading(body) {
            return self.wrapped(&self.spans(title, paint::bold().add_modifier(Modifier::UNDERLINED)), 0);
        }
        if is_rule(body) {
            return vec![paint::line(
                "─".repeat(usize::from(self.width.unwrap_or(40).min(40))),
                paint::dim(),
            )];
        }
        if body.starts_with('|') {
            return vec![self.spans(text, Style::new())];
        }
        let (mark, rest) = mark(body);
        let mut line = self.spans(rest, Style::new());
        if indent > 0 || !mark.is_empty() {
            line.spans
                .insert(0, Span::styled(format!("{}{mark}", " ".repeat(indent)), paint::dim()));
        }
        self.wrapped(&line, indent + mark.chars().count())
    }

    fn wrapped(&self, line: &Line<'_>, hanging: usize) -> Vec<Line<'static>> {
        wrap(line, self.width.unwrap_or(u16::MAX), hanging)
    }

    fn spans(&self, text: &str, style: Style) -> Line<'static> {
        let mut spans = Vec::new();
        inline(text, style, self.look, &mut spans);
        Line::from(spans)
    }
}

/// A run of three or more of the same mark at the beginning of a line.
fn fence(text: &str) -> Option<Fence> {
    let body = text.trim_start();
    let marker = body.chars().next().filter(|first| matches!(first, '`' | '~'))?;
    let length = body.chars().take_while(|next| *next == marker).count();
    let info = body.trim_start_matches(marker);
    // A line with a code span of three marks is none.
    (length >= 3 && !(marker == '`' && info.contains('`'))).then_some(Fence { marker, length })
}

fn closes(open: Fence, close: Fence, text: &str) -> bool {
    close.marker == open.marker && close.length >= open.length && text.trim().chars().all(|next| next == open.marker)
}

fn heading(body: &str) -> Option<&str> {
    let level = body.chars().take_while(|next| *next == '#').count();
    let title = body.trim_start_matches('#').strip_prefix(' ')?;
    (1..=6)
        .contains(&level)
        .then(|| title.trim().trim_end_matches('#').trim_end())
}

fn is_rule(body: &str) -> bool {
    let marks: Vec<char> = body.chars().filter(|next| *next != ' ').collect();
    let first = marks.first().copied().unwrap_or_default();
    marks.len() >= 3 && matches!(first, '-' | '*' | '_') && marks.iter().all(|next| *next == first)
}

/// The mark of a list item or a quote as it is shown, and what follows it.
fn mark(body: &str) -> (String, &str) {
    for bullet in ["- ", "* ", "+ "] {
        if let Some(rest) = body.strip_prefix(bullet) {
            return ("• ".to_owned(), rest);
        }
    }
    if let Some(rest) = body.strip_prefix('>') {
        return ("│ ".to_owned(), rest.strip_prefix(' ').unwrap_or(rest));
    }
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let after = body.get(digits..).unwrap_or_default();
    if let Some(rest) = after.strip_prefix(". ").or_else(|| after.strip_prefix(") "))
        && (1..=9).contains(&digits)
    {
        let length = body.len() - rest.len();
        return (body.get(..length).unwrap_or_default().to_owned(), rest);
    }
    (String::new(), body)
}

/// Adds `text` with its marks turned into styles.
fn inline(text: &str, style: Style, look: Look, spans: &mut Vec<Span<'static>>) {
    let mut plain_from = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let Some(found) = marked(rest, before) else {
            at += escaped_or_one(rest);
            continue;
        };
        push(spans, text.get(plain_from..at).unwrap_or_default(), style);
        found.push(style, look, spans);
        at += found.length;
        plain_from = at;
    }
    push(spans, text.get(plain_from..).unwrap_or_default(), style);
}

/// Bytes to go on when nothing is marked here; a backslash takes the next mark's meaning away and stays visible.
fn escaped_or_one(rest: &str) -> usize {
    let mut characters = rest.chars();
    let first = characters.next().map_or(1, char::len_utf8);
    match (rest.starts_with('\\'), characters.next()) {
        (true, Some(next)) if next.is_ascii_punctuation() => first + next.len_utf8(),
        _ => first,
    }
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    if !text.is_empty() {
        spans.push(Span::styled(text.to_owned(), style));
    }
}

/// A marked piece at the beginning of the rest of a line.
struct Marked<'a> {
    /// Bytes it takes with its marks.
    length: usize,
    inner: &'a str,
    what: What<'a>,
}

enum What<'a> {
    Code,
    Styled(Modifier),
    Link(&'a str),
}

impl Marked<'_> {
    fn push(&self, style: Style, look: Look, spans: &mut Vec<Span<'static>>) {
        match self.what {
            // Without colour nothing else would tell code from prose.
            What::Code if look == Look::Marked => push(spans, &format!("`{}`", self.inner), style),
            What::Code => push(spans, self.inner, style.patch(paint::code())),
            What::Styled(modifier) => inline(self.inner, style.add_modifier(modifier), look, spans),
            What::Link(target) => {
                inline(self.inner, style.add_modifier(Modifier::UNDERLINED), look, spans);
                if target != self.inner {
                    push(spans, &format!(" ({target})"), style.patch(paint::dim()));
                }
            }
        }
    }
}

fn marked(rest: &str, before: Option<char>) -> Option<Marked<'_>> {
    match rest.as_bytes().first()? {
        b'`' => code_span(rest),
        b'*' if rest.starts_with("**") => between(rest, "**", Modifier::BOLD),
        b'*' => between(rest, "*", Modifier::ITALIC),
        b'~' if rest.starts_with("~~") => between(rest, "~~", Modifier::CROSSED_OUT),
        b'_' if before.is_some_and(char::is_alphanumeric) => None,
        b'_' if rest.starts_with("__") => between(rest, "__", Modifier::BOLD),
        b'_' => between(rest, "_", Modifier::ITALIC),
        b'[' => link(rest),
        _ => None,
    }
}

fn code_span(rest: &str) -> Option<Marked<'_>> {
    let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
    let (opening, inside) = rest.split_at_checked(ticks)?;
    let end = inside.match_indices(opening).map(|(at, _)| at).find(|&at| {
        let longer = inside.get(at + ticks..).is_some_and(|after| after.starts_with('`'));
        !longer && !inside.get(..at).is_some_and(|before| before.ends_with('`'))
    })?;
    let inner = inside.get(..end)?;
    let trimmed = inner
        .strip_prefix(' ')
        .and_then(|inner| inner.strip_suffix(' '))
        .filter(|inner| inner.contains('`'));
    Some(Marked {
        length: end + 2 * ticks,
        inner: trimmed.unwrap_or(inner),
        what: What::Code,
    })
}

fn between<'a>(rest: &'a str, mark: &str, modifier: Modifier) -> Option<Marked<'a>> {
    let inside = rest.strip_prefix(mark)?;
    if inside.starts_with(char::is_whitespace) {
        return None;
    }
    let single = mark.len() == 1;
    let end = inside.match_indices(mark).map(|(at, _)| at).find(|&at| {
        let before = inside.get(..at).unwrap_or_default();
        let after = inside.get(at + mark.len()..).unwrap_or_default();
        let doubled = single && (after.starts_with(mark) || before.ends_with(mark));
        let in_word = mark.starts_with('_') && after.starts_with(char::is_alphanumeric);
        !before.is_empty() && !before.ends_with(char::is_whitespace) && !before.ends_with('\\') && !doubled && !in_word
    })?;
    Some(Marked {
        length: end + 2 * mark.len(),
        inner: inside.get(..end)?,
        what: What::Styled(modifier),
    })
}

fn link(rest: &str) -> Option<Marked<'_>> {
    let (inner, after) = rest.strip_prefix('[')?.split_once("](")?;
    let (target, _) = after.split_once(')')?;
    if inner.is_empty() || inner.contains(['[', ']']) || target.contains(' ') {
        return None;
    }
    Some(Marked {
        length: inner.len() + target.len() + 4,
        inner,
        what: What::Link(target),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Styles as letters around the text: what a person would see.
    fn shown(source: &str) -> Vec<String> {
        let mut markdown = Markdown::new(Look::Colour, Some(40));
        source
            .lines()
            .flat_map(|line| markdown.line(line))
            .map(|line| tagged(&line))
            .collect()
    }

    fn tagged(line: &Line<'_>) -> String {
        let tag = |span: &Span<'_>| {
            let mut tag = String::new();
            for (modifier, letter) in [
                (Modifier::BOLD, 'b'),
                (Modifier::ITALIC, 'i'),
                (Modifier::UNDERLINED, 'u'),
                (Modifier::CROSSED_OUT, 's'),
                (Modifier::DIM, 'd'),
            ] {
                if span.style.add_modifier.contains(modifier) {
                    tag.push(letter);
                }
            }
            if span.style.fg.is_some() {
                tag.push('c');
            }
            if tag.is_empty() {
                span.content.to_string()
            } else {
                format!("<{tag}:{}>", span.content)
            }
        };
        line.spans.iter().map(tag).collect()
    }

    #[test]
    fn marks_in_a_line_become_styles() {
        assert_eq!(shown("a **bold** and `code` b"), ["a <b:bold> and <c:code> b"]);
        assert_eq!(shown("*it* and ~~gone~~"), ["<i:it> and <s:gone>"]);
        assert_eq!(shown("**bold with `code`**"), ["<b:bold with ><bc:code>"]);
        assert_eq!(shown("see [docs](https://a.b/c)"), ["see <u:docs><d: (https://a.b/c)>"]);
    }

    #[test]
    fn what_is_no_mark_stays_as_it_is() {
        for text in [
            "snake_case_name",
            "2 * 3 * 4",
            "a ** b",
            "**open",
            "`open",
            "[x] done",
            r"\*not\*",
            "#hash",
            "a*",
        ] {
            assert_eq!(shown(text), [text]);
        }
    }

    #[test]
    fn headings_lists_quotes_and_rules_are_shown() {
        assert_eq!(shown("## Title ##"), ["<bu:Title>"]);
        assert_eq!(
            shown("- one\n  * two\n12. three"),
            ["<d:• >one", "<d:  • >two", "<d:12. >three"]
        );
        assert_eq!(shown("> said"), ["<d:│ >said"]);
        assert_eq!(shown("---"), [format!("<d:{}>", "─".repeat(40))]);
    }

    #[test]
    fn a_long_list_item_hangs_below_its_text() {
        let rows = shown("- one two three four five six seven eight nine ten");
        assert_eq!(rows, ["<d:• >one two three four five six seven", "  eight nine ten"]);
    }

    #[test]
    fn code_in_a_fence_is_verbatim_and_ends_with_its_own_mark() {
        let rows = shown("````md\n**a**  b\n```\nlong long long long long long long long long line\n````\n**b**");
        assert_eq!(
            rows,
            [
                "<d:````md>",
                "<c:**a**  b>",
                "<c:```>",
                "<c:long long long long long long long long long line>",
                "<d:````>",
                "<b:b>"
            ]
        );
    }

    #[test]
    fn code_keeps_its_ticks_without_colour_and_everything_stays_when_plain() {
        let text = |look, source: &str| {
            let rows = Markdown::new(look, Some(40)).line(source);
            rows.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(text(Look::Marked, "**a** `b`"), ["a `b`"]);
        assert_eq!(text(Look::Plain, "# **a** `b`"), ["# **a** `b`"]);
    }

    #[test]
    fn control_characters_of_a_reply_are_visible() {
        assert_eq!(shown("a\u{1b}[2J\u{202e}b"), ["a␛[2J<U+202E>b"]);
    }

    #[test]
    fn no_character_of_any_line_is_lost_but_marks() {
        for text in [
            "ünï **fett** ende",
            "日本 `コード` 語",
            "e\u{301} *e\u{301}* x",
            "`` a`b `` c",
        ] {
            let rows = Markdown::new(Look::Colour, None).line(text);
            let kept: String = rows.iter().map(ToString::to_string).collect();
            let bare: String = text.chars().filter(|next| !matches!(next, '*')).collect();
            assert_eq!(kept.replace(['`', ' '], ""), bare.replace(['`', ' '], ""));
        }
    }
}
