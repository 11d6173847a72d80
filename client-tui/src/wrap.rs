//! Breaking and cutting styled lines by terminal columns: by graphemes, so that wide and combining characters stay whole.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns between tab stops; a tab becomes blanks up to the next, because a terminal's own stops do not survive wrapping.
const TAB: usize = 4;

/// A narrower terminal is treated as if it were this wide, in columns.
pub(crate) const NARROWEST: u16 = 10;

/// One grapheme as it stands on the screen.
#[derive(Debug, Clone)]
struct Glyph {
    text: String,
    width: usize,
    style: Style,
}

impl Glyph {
    fn is_blank(&self) -> bool {
        self.text == " "
    }
}

/// Breaks `line` between words so that no row is wider than `width` columns; rows after the first begin with `hanging` blanks.
/// A word that is wider than a row is broken where the row ends. Blanks at a break go.
pub(crate) fn wrap(line: &Line<'_>, width: u16, hanging: usize) -> Vec<Line<'static>> {
    let width = usize::from(width.max(NARROWEST));
    let hanging = hanging.min(width / 2);
    let glyphs = glyphs(line);
    let mut rows = Vec::new();
    let mut rest = glyphs.as_slice();
    loop {
        let indent = if rows.is_empty() { 0 } else { hanging };
        let (row, after) = split_row(rest, width - indent);
        rows.push(to_line(row, indent, line.style));
        if after.is_empty() {
            return rows;
        }
        rest = after;
    }
}

/// The first `width` columns of `line`; where something is cut the last column is `…`.
pub(crate) fn clip(line: &Line<'_>, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let glyphs = glyphs(line);
    if glyphs.iter().map(|glyph| glyph.width).sum::<usize>() <= width {
        return to_line(&glyphs, 0, line.style);
    }
    let fitting = fitting(&glyphs, width.saturating_sub(1));
    let mut cut = to_line(glyphs.get(..fitting).unwrap_or_default(), 0, line.style);
    if width > 0 {
        let style = cut.spans.last().map(|span| span.style).unwrap_or_default();
        cut.spans.push(Span::styled("…", style));
    }
    cut
}

/// `text` cut to `width` columns as [`clip`] does.
pub(crate) fn clip_text(text: &str, width: u16) -> String {
    clip(&Line::from(text), width)
        .spans
        .iter()
        .map(|span| span.content.as_ref())
        .collect()
}

/// The rows that `line` takes when a terminal of `width` columns breaks it wherever a row ends, at least one.
pub(crate) fn rows_when_broken(widths: impl IntoIterator<Item = usize>, width: u16) -> u16 {
    let width = usize::from(width.max(1));
    let (mut rows, mut column) = (1, 0);
    for glyph in widths {
        if column + glyph > width {
            rows += 1;
            column = 0;
        }
        column += glyph;
    }
    rows
}

/// The columns of each grapheme of `line`.
pub(crate) fn widths(line: &Line<'_>) -> Vec<usize> {
    glyphs(line).iter().map(|glyph| glyph.width).collect()
}

fn glyphs(line: &Line<'_>) -> Vec<Glyph> {
    let mut glyphs = Vec::new();
    let mut column = 0;
    for span in &line.spans {
        for text in span.content.graphemes(true) {
            if text == "\t" {
                let blanks = TAB - column % TAB;
                column += blanks;
                let blank = Glyph {
                    text: " ".to_owned(),
                    width: 1,
                    style: span.style,
                };
                glyphs.extend(std::iter::repeat_n(blank, blanks));
                continue;
            }
            let width = text.width();
            column += width;
            glyphs.push(Glyph {
                text: text.to_owned(),
                width,
                style: span.style,
            });
        }
    }
    glyphs
}

/// How many glyphs fit into `width` columns.
fn fitting(glyphs: &[Glyph], width: usize) -> usize {
    let mut used = 0;
    let past = glyphs.iter().position(|glyph| {
        used += glyph.width;
        used > width
    });
    past.unwrap_or(glyphs.len())
}

fn split_row(glyphs: &[Glyph], width: usize) -> (&[Glyph], &[Glyph]) {
    // A glyph wider than the row goes out all the same, or there would be no end.
    let fits = fitting(glyphs, width).max(1);
    if fits >= glyphs.len() {
        return (glyphs, &[]);
    }
    let begins_with = glyphs.iter().take_while(|glyph| glyph.is_blank()).count();
    let blank = (begins_with..=fits)
        .rev()
        .find(|&at| glyphs.get(at).is_some_and(Glyph::is_blank));
    match blank.filter(|&at| at > begins_with) {
        Some(at) => {
            let (row, after) = glyphs.split_at(at);
            let blanks = after.iter().take_while(|glyph| glyph.is_blank()).count();
            let end = row
                .iter()
                .rposition(|glyph| !glyph.is_blank())
                .map_or(0, |last| last + 1);
            (row.get(..end).unwrap_or(row), after.get(blanks..).unwrap_or_default())
        }
        None => glyphs.split_at(fits),
    }
}

fn to_line(glyphs: &[Glyph], indent: usize, style: Style) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    if indent > 0 {
        spans.push(Span::raw(" ".repeat(indent)));
    }
    for glyph in glyphs {
        match spans.last_mut() {
            Some(span) if span.style == glyph.style => span.content.to_mut().push_str(&glyph.text),
            _ => spans.push(Span::styled(glyph.text.clone(), glyph.style)),
        }
    }
    Line::from(spans).style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: u16, hanging: usize) -> Vec<String> {
        wrap(&Line::from(text.to_owned()), width, hanging)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(
            wrapped("the quick brown fox jumps", 10, 0),
            ["the quick", "brown fox", "jumps"]
        );
    }

    #[test]
    fn a_word_that_is_too_long_is_broken_and_nothing_is_lost() {
        assert_eq!(
            wrapped("abcdefghijklmnopqrstuvwxyz", 10, 0),
            ["abcdefghij", "klmnopqrst", "uvwxyz"]
        );
    }

    #[test]
    fn later_rows_hang_below_the_text() {
        assert_eq!(wrapped("• one two three four", 12, 2), ["• one two", "  three four"]);
    }

    #[test]
    fn indentation_at_the_start_is_kept() {
        assert_eq!(
            wrapped("    four words are here", 14, 0),
            ["    four words", "are here"]
        );
    }

    #[test]
    fn wide_and_combining_characters_stay_whole() {
        assert_eq!(wrapped("日本語日本語", 11, 0), ["日本語日本", "語"]);
        assert_eq!(
            wrapped(
                "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}x",
                10,
                0
            )
            .len(),
            2
        );
    }

    #[test]
    fn an_empty_line_is_one_row() {
        assert_eq!(wrapped("", 10, 0), [""]);
    }

    #[test]
    fn cutting_says_that_something_was_cut() {
        assert_eq!(clip_text("日本語", 6), "日本語");
        assert_eq!(clip_text("日本語", 5), "日本…");
        assert_eq!(clip_text("abc", 2), "a…");
        assert_eq!(clip_text("a\tb", 80), "a   b");
    }

    #[test]
    fn a_terminal_moves_a_wide_character_that_does_not_fit_to_the_next_row() {
        assert_eq!(rows_when_broken([2, 2, 2], 3), 3);
        assert_eq!(rows_when_broken([1; 80], 40), 2);
        assert_eq!(rows_when_broken([], 40), 1);
    }
}
