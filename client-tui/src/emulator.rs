//! A terminal for tests: what is on it and what scrolled away.

use std::io::{self, Write};

/// A terminal and everything that ever scrolled off its top.
pub(crate) struct Terminal(vt100::Parser);

/// Rows that are kept.
const SCROLLBACK: usize = 4000;

impl Terminal {
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        Self(vt100::Parser::new(rows, columns, SCROLLBACK))
    }

    /// Every row from the oldest on, without blanks at the end.
    pub(crate) fn rows(&mut self) -> Vec<String> {
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

    /// The terminal has another size now. Rows that do not fit are cut, as xterm does.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.0.screen_mut().set_size(rows, columns);
    }

    /// Row and column of the cursor.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.0.screen().cursor_position()
    }

    /// Rows that contain `text`.
    pub(crate) fn count(&mut self, text: &str) -> usize {
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
