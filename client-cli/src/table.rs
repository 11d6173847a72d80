//! Lists for people: aligned columns with a head on a terminal, tab-separated lines without one elsewhere.

use crate::failure::Failure;
use crate::output::Output;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Prints `rows` under `head`. Cells have been through `display`. The last column is cut at the terminal's edge.
pub(crate) fn print(output: &Output, head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    if !output.on_terminal() {
        let lines: Vec<String> = rows.iter().map(|row| row.join("\t") + "\n").collect();
        return output.write(&lines.concat());
    }
    output.write(&aligned(head, rows, columns()))
}

/// How many columns stdout's terminal has.
pub(crate) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
    size.map(|size| usize::from(size.ws_col))
        .ok()
        .filter(|columns| *columns > 0)
        .unwrap_or(COLUMNS)
}

fn aligned(head: &[&str], rows: &[Vec<String>], columns: usize) -> String {
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = std::iter::once(&head).chain(rows).filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
        }
        text.push_str(cut(&line, columns).trim_end());
        text.push('\n');
    }
    text
}

/// What of `line` fits.
fn cut(line: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, character) in line.char_indices() {
        used += character.width().unwrap_or(0);
        if used > columns {
            return line.get(..at).unwrap_or(line);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn columns_align_by_width_and_end_at_the_edge() {
        let rows = [
            vec!["a1".to_owned(), "日本".to_owned(), "a long title".to_owned()],
            vec!["b22".to_owned(), "x".to_owned(), "short".to_owned()],
        ];
        assert_eq!(
            aligned(&["ID", "NAME", "TITLE"], &rows, 18),
            "ID   NAME  TITLE\na1   日本  a long\nb22  x     short\n"
        );
    }
}
