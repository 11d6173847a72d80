//! The screen against an emulated terminal: what scrolled away and what is left on it.

use super::*;
use crate::paint;

/// A terminal and everything that ever scrolled off its top.
struct Terminal(vt100::Parser);

const SCROLLBACK: usize = 2000;

impl Terminal {
    fn new(size: Size) -> Self {
        Self(vt100::Parser::new(size.rows, size.columns, SCROLLBACK))
    }

    /// Every row from the oldest on, without blanks at the end.
    fn rows(&mut self) -> Vec<String> {
        let (height, width) = self.0.screen().size();
        self.0.screen_mut().set_scrollback(SCROLLBACK);
        let above = self.0.screen().scrollback();
        let mut rows = Vec::new();
        for offset in (1..=above).rev() {
            self.0.screen_mut().set_scrollback(offset);
            rows.extend(self.0.screen().rows(0, width).next());
        }
        self.0.screen_mut().set_scrollback(0);
        rows.extend(self.0.screen().rows(0, width).take(usize::from(height)));
        rows.into_iter().map(|row| row.trim_end().to_owned()).collect()
    }

    fn count(&mut self, text: &str) -> usize {
        self.rows().iter().filter(|row| row.contains(text)).count()
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.process(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn screen(size: Size) -> Screen<Terminal> {
    Screen::new(Terminal::new(size), Look::Colour, Narrowing::Cuts)
}

fn live(lines: &[&str], row: usize, column: u16) -> Live {
    Live {
        lines: lines.iter().map(|line| paint::line(*line, paint::dim())).collect(),
        row,
        column,
    }
}

const WIDE: Size = Size { columns: 80, rows: 24 };
const NARROW: Size = Size { columns: 40, rows: 24 };

fn number(line: usize) -> Line<'static> {
    Line::from(format!(
        "line {line:03} of the reply, which is long enough to be broken at forty columns"
    ))
}

#[test]
fn every_finished_line_is_in_the_scrollback_once_and_the_live_area_once() {
    for size in [WIDE, NARROW] {
        let mut screen = screen(size);
        for index in 0..200 {
            let height = index % 7;
            let mut area = vec!["spinner"; height];
            area.extend(["> draft", "status"]);
            screen.draw(&[number(index)], &live(&area, height, 7), size).unwrap();
        }
        for index in 0..200 {
            assert_eq!(screen.out.count(&format!("line {index:03}")), 1, "{size:?} {index}");
        }
        assert_eq!(screen.out.count("> draft"), 1, "{size:?}");
        assert_eq!(screen.out.count("status"), 1, "{size:?}");
    }
}

#[test]
fn a_change_of_size_leaves_no_stale_row_and_loses_no_line() {
    let mut terminal = screen(WIDE);
    for index in 0..200 {
        let size = if index / 20 % 2 == 0 { WIDE } else { NARROW };
        terminal.out.0.screen_mut().set_size(size.rows, size.columns);
        terminal
            .draw(
                &[number(index)],
                &live(&["tail of the reply", "> draft", "status"], 1, 3),
                size,
            )
            .unwrap();
    }
    for index in 0..200 {
        assert_eq!(terminal.out.count(&format!("line {index:03}")), 1, "{index}");
    }
    for once in ["tail of the reply", "> draft", "status"] {
        assert_eq!(terminal.out.count(once), 1, "{once}");
    }
}

#[test]
fn the_cursor_stands_where_the_input_is() {
    let mut screen = screen(WIDE);
    screen
        .draw(&[number(1)], &live(&["spinner", "> ab", "status"], 1, 4), WIDE)
        .unwrap();
    assert_eq!(screen.out.0.screen().cursor_position(), (2, 4));
    screen
        .draw(&[], &live(&["spinner", "> abc", "status"], 1, 5), WIDE)
        .unwrap();
    assert_eq!(screen.out.0.screen().cursor_position(), (2, 5));
    assert_eq!(screen.out.rows().get(2).map(String::as_str), Some("> abc"));
}

#[test]
fn nothing_is_written_when_nothing_changed() {
    let mut screen = Screen::new(Vec::new(), Look::Colour, Narrowing::Breaks);
    let area = live(&["> draft"], 0, 2);
    screen.draw(&[], &area, WIDE).unwrap();
    let length = screen.out.len();
    screen.draw(&[], &area, WIDE).unwrap();
    assert_eq!(screen.out.len(), length);
}

#[test]
fn a_row_of_the_whole_width_keeps_its_last_character() {
    let mut screen = screen(NARROW);
    let full = "x".repeat(40);
    screen.draw(&[], &live(&["short", "> "], 1, 2), NARROW).unwrap();
    screen.draw(&[], &live(&[&full, "> "], 1, 2), NARROW).unwrap();
    assert_eq!(screen.out.rows().first(), Some(&full));
}

#[test]
fn a_narrower_terminal_that_breaks_rows_is_cleared_from_where_the_area_begins() {
    let mut screen = Screen::new(Vec::new(), Look::Plain, Narrowing::Breaks);
    let wide = "x".repeat(70);
    screen.draw(&[], &live(&[&wide, "short", "> "], 2, 2), WIDE).unwrap();
    screen.out.clear();
    screen.draw(&[], &live(&["> "], 0, 2), NARROW).unwrap();
    let text = String::from_utf8(screen.out).unwrap();
    // Two rows of the broken line and the short one.
    assert!(text.starts_with(&format!("{BEGIN}\r\x1b[3A\x1b[J")), "{text:?}");
}

#[test]
fn clearing_takes_the_live_area_away() {
    let mut screen = screen(WIDE);
    screen
        .draw(&[number(1)], &live(&["spinner", "> ab", "status"], 1, 4), WIDE)
        .unwrap();
    screen.clear(WIDE.columns).unwrap();
    assert_eq!(screen.out.count("status") + screen.out.count("spinner"), 0);
    assert_eq!(screen.out.0.screen().cursor_position(), (1, 0));
}
