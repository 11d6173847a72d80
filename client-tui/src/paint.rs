//! Looks: the few styles there are, and how a styled line becomes the bytes a terminal gets.
//!
//! Only the sixteen colours and attributes every terminal maps to its own theme are used, so that light and dark both read well.
//! This is the only place that writes SGR sequences; the text inside must have been through `protocol::display` already.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::fmt::Write;

/// How much of the styles is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// No escape sequence at all, and markdown as it was written: for pipes and files.
    Plain,
    /// Bold, dim and underlined, but no colour: `NO_COLOR`.
    Marked,
    /// Everything.
    Colour,
}

impl Look {
    /// What a terminal shall get: `NO_COLOR` with any content but none takes the colours away.
    pub(crate) fn from_environment() -> Self {
        match std::env::var_os("NO_COLOR") {
            Some(value) if !value.is_empty() => Self::Marked,
            _ => Self::Colour,
        }
    }
}

/// What matters less: reasoning, results, hints.
pub(crate) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// What stands out.
pub(crate) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Code in running text and in blocks.
pub(crate) fn code() -> Style {
    Style::new().fg(Color::Cyan)
}

/// What a person said.
pub(crate) fn person() -> Style {
    bold().fg(Color::Blue)
}

/// What went wrong.
pub(crate) fn error() -> Style {
    Style::new().fg(Color::Red)
}

/// What needs a person.
pub(crate) fn attention() -> Style {
    bold().fg(Color::Yellow)
}

/// What went well, and lines a diff adds.
pub(crate) fn good() -> Style {
    Style::new().fg(Color::Green)
}

/// One line of a diff, or any other line, by its first character.
pub(crate) fn diff_line(text: &str) -> Style {
    match text.trim_start_matches(' ').as_bytes().first() {
        Some(b'+') => good(),
        Some(b'-') => error(),
        Some(b'@') => dim(),
        _ => Style::new(),
    }
}

/// A line in one style.
pub(crate) fn line(text: impl Into<String>, style: Style) -> Line<'static> {
    Line::from(Span::styled(text.into(), style))
}

/// The line as a terminal gets it, without its end. Styles do not reach beyond it.
pub(crate) fn ansi(line: &Line<'_>, look: Look) -> String {
    let mut out = String::new();
    for span in &line.spans {
        let codes = sgr(line.style.patch(span.style), look);
        if codes.is_empty() {
            out.push_str(&span.content);
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "\x1b[{codes}m{}\x1b[0m", span.content);
        }
    }
    out
}

fn sgr(style: Style, look: Look) -> String {
    if look == Look::Plain {
        return String::new();
    }
    let attributes = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    let attributes = attributes
        .into_iter()
        .filter(|(modifier, _)| style.add_modifier.contains(*modifier));
    let mut codes: Vec<&str> = attributes.map(|(_, code)| code).collect();
    if look == Look::Colour {
        codes.extend(style.fg.and_then(foreground));
    }
    codes.join(";")
}

fn foreground(colour: Color) -> Option<&'static str> {
    Some(match colour {
        Color::Red => "31",
        Color::Green => "32",
        Color::Yellow => "33",
        Color::Blue => "34",
        Color::Magenta => "35",
        Color::Cyan => "36",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_shows_what_it_may() {
        let line = Line::from(vec![Span::styled("a", person()), Span::raw(" b")]);
        assert_eq!(ansi(&line, Look::Colour), "\x1b[1;34ma\x1b[0m b");
        assert_eq!(ansi(&line, Look::Marked), "\x1b[1ma\x1b[0m b");
        assert_eq!(ansi(&line, Look::Plain), "a b");
    }
}
