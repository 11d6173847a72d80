//! The terminal as an inline client uses it: finished lines scroll up into its own scrollback, a small live area below them is
//! drawn again and again.
//!
//! Every movement is relative to the cursor, which always stands inside the live area. The screen therefore never has to ask
//! where it is, the area may have another height each time, and finished lines go the way of any program's output: once, in
//! order, with whatever scrollback, selection and copying the terminal offers. A line that is wider than the terminal is broken
//! by the terminal, which joins it again when it is copied or the window grows.
//!
//! When the window gets narrower, terminals break the rows of the live area anew and leave the cursor on the same character.
//! The rows above it are counted as the terminal broke them, so that drawing begins where the area does and leaves no stale row.

use crate::paint::{Look, ansi};
use crate::wrap::{clip, rows_when_broken, widths};
use ratatui::text::Line;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Begins and ends a change that the terminal shows at once, if it can; others ignore it.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";

/// What a terminal does with rows that no longer fit when it gets narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// Breaks them into more rows: nearly every terminal.
    Breaks,
    /// Cuts them: xterm.
    Cuts,
}

impl Narrowing {
    /// What the terminal this process runs in does. Inside tmux it is tmux that matters.
    pub(crate) fn from_environment() -> Self {
        let is_set = |name| std::env::var_os(name).is_some();
        if is_set("XTERM_VERSION") && !is_set("TMUX") {
            Self::Cuts
        } else {
            Self::Breaks
        }
    }
}

/// The size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

/// The live area: its rows, and where the cursor stands in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Live {
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) row: usize,
    pub(crate) column: u16,
}

/// A live area that is on the screen.
#[derive(Debug)]
struct Drawn {
    rows: Vec<Row>,
    row: usize,
    column: u16,
    columns: u16,
}

#[derive(Debug, PartialEq)]
struct Row {
    text: String,
    /// Columns of each grapheme.
    widths: Vec<usize>,
}

/// The writer of everything that is shown.
#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    look: Look,
    narrowing: Narrowing,
    drawn: Option<Drawn>,
}

impl<W: Write> Screen<W> {
    /// A screen on which nothing is drawn, whose cursor stands at the beginning of a row.
    pub(crate) fn new(out: W, look: Look, narrowing: Narrowing) -> Self {
        Self {
            out,
            look,
            narrowing,
            drawn: None,
        }
    }

    /// Adds `finished` to the scrollback and shows `live` below. Writes nothing if nothing changed.
    ///
    /// # Errors
    /// What writing to the terminal reports.
    pub(crate) fn draw(&mut self, finished: &[Line<'static>], live: &Live, size: Size) -> io::Result<()> {
        let next = self.drawable(live, size);
        let mut out = String::from(BEGIN);
        let same_shape = self.drawn.as_ref().filter(|drawn| {
            finished.is_empty() && drawn.columns == next.columns && drawn.rows.len() == next.rows.len()
        });
        match same_shape {
            Some(drawn) if drawn.rows == next.rows && (drawn.row, drawn.column) == (next.row, next.column) => {
                return Ok(());
            }
            Some(drawn) => change_rows(&mut out, drawn, &next),
            None => {
                self.to_beginning(&mut out, size.columns);
                out.push_str("\x1b[J");
                for line in finished {
                    out.push_str(&ansi(line, self.look));
                    out.push_str("\r\n");
                }
                let rows: Vec<&str> = next.rows.iter().map(|row| row.text.as_str()).collect();
                out.push_str(&rows.join("\r\n"));
                up(&mut out, next.rows.len().saturating_sub(1 + next.row));
                to_column(&mut out, next.column);
            }
        }
        out.push_str(END);
        self.drawn = Some(next);
        self.out.write_all(out.as_bytes())?;
        self.out.flush()
    }

    /// Takes the live area away; the cursor stands where it began.
    ///
    /// # Errors
    /// What writing to the terminal reports.
    pub(crate) fn clear(&mut self, columns: u16) -> io::Result<()> {
        let mut out = String::new();
        self.to_beginning(&mut out, columns);
        out.push_str("\x1b[J");
        self.drawn = None;
        self.out.write_all(out.as_bytes())?;
        self.out.flush()
    }

    /// The terminal itself.
    #[cfg(test)]
    pub(crate) fn terminal(&mut self) -> &mut W {
        &mut self.out
    }

    fn drawable(&self, live: &Live, size: Size) -> Drawn {
        let rows = live.lines.iter().map(|line| {
            let mut line = clip(line, size.columns);
            trim_end(&mut line);
            Row {
                text: ansi(&line, self.look),
                widths: widths(&line),
            }
        });
        Drawn {
            rows: rows.collect(),
            row: live.row.min(live.lines.len().saturating_sub(1)),
            column: live.column.min(size.columns.saturating_sub(1)),
            columns: size.columns,
        }
    }

    /// From the cursor to the first row of what is drawn, as it stands in a terminal of `columns` now.
    fn to_beginning(&self, out: &mut String, columns: u16) {
        out.push('\r');
        let Some(drawn) = &self.drawn else { return };
        let broken = columns < drawn.columns && self.narrowing == Narrowing::Breaks;
        let above = if broken {
            let rows = drawn.rows.iter().take(drawn.row);
            let above: u16 = rows
                .map(|row| rows_when_broken(row.widths.iter().copied(), columns))
                .sum();
            usize::from(above + drawn.column / columns.max(1))
        } else {
            drawn.row
        };
        up(out, above);
    }
}

/// Draws the rows that differ, where both areas have the same rows and columns.
fn change_rows(out: &mut String, drawn: &Drawn, next: &Drawn) {
    let mut at = drawn.row;
    for (index, (old, new)) in drawn.rows.iter().zip(&next.rows).enumerate() {
        if old != new {
            go(out, at, index);
            // Cleared first: after a full row the cursor still stands on its last character.
            let _ = write!(out, "\r\x1b[K{}", new.text);
            at = index;
        }
    }
    go(out, at, next.row);
    to_column(out, next.column);
}

fn go(out: &mut String, from: usize, to: usize) {
    if to > from {
        let _ = write!(out, "\x1b[{}B", to - from);
    } else {
        up(out, from - to);
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

fn to_column(out: &mut String, column: u16) {
    out.push('\r');
    if column > 0 {
        let _ = write!(out, "\x1b[{column}C");
    }
}

/// Blanks at the end would be broken into rows of their own when the window gets narrower.
fn trim_end(line: &mut Line<'static>) {
    while let Some(last) = line.spans.last_mut() {
        let length = last.content.trim_end_matches(' ').len();
        last.content.to_mut().truncate(length);
        if length > 0 {
            return;
        }
        line.spans.pop();
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
