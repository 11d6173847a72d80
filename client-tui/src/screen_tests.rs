//! The screen against an emulated terminal: what scrolled away and what is left on it.

use super::*;
use crate::emulator::Terminal;
use crate::paint;

fn screen(size: Size) -> Screen<Terminal> {
    Screen::new(Terminal::new(size.columns, size.rows), Look::Colour, Narrowing::Cuts)
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
fn every_finished_line_is_in_the_scrollback_once_and_the_live_area_once() -> io::Result<()> {
    for size in [WIDE, NARROW] {
        let mut screen = screen(size);
        for index in 0..200 {
            let height = index % 7;
            let mut area = vec!["spinner"; height];
            area.extend(["> draft", "status"]);
            screen.draw(&[number(index)], &live(&area, height, 7), size)?;
        }
        for index in 0..200 {
            assert_eq!(screen.out.count(&format!("line {index:03}")), 1, "{size:?} {index}");
        }
        assert_eq!(screen.out.count("> draft"), 1, "{size:?}");
        assert_eq!(screen.out.count("status"), 1, "{size:?}");
    }
    Ok(())
}

#[test]
fn a_change_of_size_leaves_no_stale_row_and_loses_no_line() -> io::Result<()> {
    let mut terminal = screen(WIDE);
    for index in 0..200 {
        let size = if index / 20 % 2 == 0 { WIDE } else { NARROW };
        terminal.out.resize(size.columns, size.rows);
        terminal.draw(
            &[number(index)],
            &live(&["tail of the reply", "> draft", "status"], 1, 3),
            size,
        )?;
    }
    for index in 0..200 {
        assert_eq!(terminal.out.count(&format!("line {index:03}")), 1, "{index}");
    }
    for once in ["tail of the reply", "> draft", "status"] {
        assert_eq!(terminal.out.count(once), 1, "{once}");
    }
    Ok(())
}

#[test]
fn the_cursor_stands_where_the_input_is() -> io::Result<()> {
    let mut screen = screen(WIDE);
    screen.draw(&[number(1)], &live(&["spinner", "> ab", "status"], 1, 4), WIDE)?;
    assert_eq!(screen.out.cursor(), (2, 4));
    screen.draw(&[], &live(&["spinner", "> abc", "status"], 1, 5), WIDE)?;
    assert_eq!(screen.out.cursor(), (2, 5));
    assert_eq!(screen.out.rows().get(2).map(String::as_str), Some("> abc"));
    Ok(())
}

#[test]
fn nothing_is_written_when_nothing_changed() -> io::Result<()> {
    let mut screen = Screen::new(Vec::new(), Look::Colour, Narrowing::Breaks);
    let area = live(&["> draft"], 0, 2);
    screen.draw(&[], &area, WIDE)?;
    let length = screen.out.len();
    screen.draw(&[], &area, WIDE)?;
    assert_eq!(screen.out.len(), length);
    Ok(())
}

#[test]
fn a_row_of_the_whole_width_keeps_its_last_character() -> io::Result<()> {
    let mut screen = screen(NARROW);
    let full = "x".repeat(40);
    screen.draw(&[], &live(&["short", "> "], 1, 2), NARROW)?;
    screen.draw(&[], &live(&[&full, "> "], 1, 2), NARROW)?;
    assert_eq!(screen.out.rows().first(), Some(&full));
    Ok(())
}

#[test]
fn a_narrower_terminal_that_breaks_rows_is_cleared_from_where_the_area_begins() -> io::Result<()> {
    let mut screen = Screen::new(Vec::new(), Look::Plain, Narrowing::Breaks);
    let wide = "x".repeat(70);
    screen.draw(&[], &live(&[&wide, "short", "> "], 2, 2), WIDE)?;
    screen.out.clear();
    screen.draw(&[], &live(&["> "], 0, 2), NARROW)?;
    let text = String::from_utf8_lossy(&screen.out);
    // Two rows of the broken line and the short one.
    assert!(text.starts_with(&format!("{BEGIN}\r\x1b[3A\x1b[J")), "{text:?}");
    Ok(())
}

#[test]
fn clearing_takes_the_live_area_away() -> io::Result<()> {
    let mut screen = screen(WIDE);
    screen.draw(&[number(1)], &live(&["spinner", "> ab", "status"], 1, 4), WIDE)?;
    screen.clear(WIDE.columns)?;
    assert_eq!(screen.out.count("status") + screen.out.count("spinner"), 0);
    assert_eq!(screen.out.cursor(), (1, 0));
    Ok(())
}
