//! The input line: a draft of one or more lines, its cursor, and the history of what was sent. Knows keys that edit; what sends,
//! answers or leaves is decided elsewhere.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use protocol::display::{Form, display};
use ratatui_textarea::{CursorMove, TextArea};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Inputs kept for Up and Down.
const HISTORY: usize = 200;

/// What is being typed.
#[derive(Debug)]
pub(crate) struct Draft {
    area: TextArea<'static>,
    history: Vec<String>,
    /// Place in the history that is shown; its length: none, the draft itself.
    at: usize,
    /// The draft that was left for the history.
    left: String,
}

/// The draft as rows of a width, with the cursor's row and column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<String>,
    pub(crate) row: usize,
    pub(crate) column: u16,
}

impl Draft {
    /// An empty draft with no history.
    pub(crate) fn new() -> Self {
        Self {
            area: TextArea::default(),
            history: Vec::new(),
            at: 0,
            left: String::new(),
        }
    }

    /// A draft of this text, with no history.
    pub(crate) fn with(text: &str) -> Self {
        let mut draft = Self::new();
        draft.set(text);
        draft
    }

    /// The whole text.
    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether nothing is typed.
    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Replaces the text; the cursor goes to its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
    }

    /// Takes the text away.
    pub(crate) fn clear(&mut self) {
        self.set("");
        self.at = self.history.len();
    }

    /// Takes the text to send it, and remembers it.
    pub(crate) fn take(&mut self) -> String {
        let text = self.text();
        if self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        if self.history.len() > HISTORY {
            self.history.remove(0);
        }
        self.clear();
        text
    }

    /// Inserts what was pasted, in one piece. Terminals send line ends as carriage returns.
    pub(crate) fn paste(&mut self, text: &str) {
        self.area.insert_str(text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    /// Edits; `false` if the key edits nothing.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let area = &mut self.area;
        match key.code {
            KeyCode::Char('j') if control => area.insert_newline(),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => area.insert_newline(),
            KeyCode::Char('a') if control => area.move_cursor(CursorMove::Head),
            KeyCode::Home => area.move_cursor(CursorMove::Head),
            KeyCode::Char('e') if control => area.move_cursor(CursorMove::End),
            KeyCode::End => area.move_cursor(CursorMove::End),
            KeyCode::Char('b') if alt => area.move_cursor(CursorMove::WordBack),
            KeyCode::Left if alt || control => area.move_cursor(CursorMove::WordBack),
            KeyCode::Char('f') if alt => area.move_cursor(CursorMove::WordForward),
            KeyCode::Right if alt || control => area.move_cursor(CursorMove::WordForward),
            KeyCode::Char('b') if control => area.move_cursor(CursorMove::Back),
            KeyCode::Left => area.move_cursor(CursorMove::Back),
            KeyCode::Char('f') if control => area.move_cursor(CursorMove::Forward),
            KeyCode::Right => area.move_cursor(CursorMove::Forward),
            KeyCode::Char('k') if control => _ = area.delete_line_by_end(),
            KeyCode::Char('u') if control => _ = area.delete_line_by_head(),
            KeyCode::Char('w') if control => _ = area.delete_word(),
            KeyCode::Backspace if alt => _ = area.delete_word(),
            KeyCode::Char('h') if control => _ = area.delete_char(),
            KeyCode::Backspace => _ = area.delete_char(),
            KeyCode::Char('d') if alt => _ = area.delete_next_word(),
            KeyCode::Char('d') if control => _ = area.delete_next_char(),
            KeyCode::Delete => _ = area.delete_next_char(),
            KeyCode::Char('p') if control => self.up(),
            KeyCode::Up => self.up(),
            KeyCode::Char('n') if control => self.down(),
            KeyCode::Down => self.down(),
            KeyCode::Char(character) if !control && !alt => area.insert_char(character),
            _ => return false,
        }
        true
    }

    fn up(&mut self) {
        let (row, _) = self.cursor();
        if row > 0 {
            self.area.move_cursor(CursorMove::Up);
        } else if let Some(before) = self.at.checked_sub(1) {
            if self.at == self.history.len() {
                self.left = self.text();
            }
            self.show(before);
        }
    }

    fn down(&mut self) {
        let (row, _) = self.cursor();
        if row + 1 < self.area.lines().len() {
            self.area.move_cursor(CursorMove::Down);
        } else if self.at < self.history.len() {
            self.show(self.at + 1);
        }
    }

    fn show(&mut self, at: usize) {
        self.at = at;
        let text = self.history.get(at).unwrap_or(&self.left).clone();
        self.set(&text);
    }

    /// Line and character of the cursor.
    fn cursor(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    /// The draft broken into rows of at most `width` columns, with what is invisible made visible.
    pub(crate) fn rows(&self, width: u16) -> Rows {
        let width = usize::from(width.max(2));
        let (line_at, character_at) = self.cursor();
        let mut shown = Rows {
            rows: Vec::new(),
            row: 0,
            column: 0,
        };
        for (index, line) in self.area.lines().iter().enumerate() {
            let (mut row, mut column, mut characters) = (String::new(), 0, 0);
            let mut cursor = None;
            for grapheme in line.graphemes(true) {
                let text = display(grapheme, Form::Inline);
                let columns = text.width();
                if column + columns > width && column > 0 {
                    shown.rows.push(std::mem::take(&mut row));
                    column = 0;
                }
                if index == line_at && cursor.is_none() && characters >= character_at {
                    cursor = Some((shown.rows.len(), column));
                }
                row.push_str(&text);
                column += columns;
                characters += grapheme.chars().count();
            }
            if index == line_at && cursor.is_none() {
                if column >= width {
                    shown.rows.push(std::mem::take(&mut row));
                    column = 0;
                }
                cursor = Some((shown.rows.len(), column));
            }
            if let Some((at, column)) = cursor {
                shown.row = at;
                shown.column = u16::try_from(column).unwrap_or(u16::MAX);
            }
            shown.rows.push(row);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(draft: &mut Draft, code: KeyCode, modifiers: KeyModifiers) {
        assert!(draft.key(KeyEvent::new(code, modifiers)), "{code:?}");
    }

    fn typed(text: &str) -> Draft {
        let mut draft = Draft::new();
        for character in text.chars() {
            press(&mut draft, KeyCode::Char(character), KeyModifiers::NONE);
        }
        draft
    }

    #[test]
    fn the_usual_keys_edit_a_line() {
        let mut draft = typed("one two three");
        press(&mut draft, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(draft.text(), "one two ");
        press(&mut draft, KeyCode::Char('a'), KeyModifiers::CONTROL);
        press(&mut draft, KeyCode::Char('f'), KeyModifiers::CONTROL);
        press(&mut draft, KeyCode::Char('k'), KeyModifiers::CONTROL);
        assert_eq!(draft.text(), "o");
        press(&mut draft, KeyCode::Char('e'), KeyModifiers::CONTROL);
        press(&mut draft, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert!(draft.is_empty());
    }

    #[test]
    fn what_was_sent_comes_back_and_the_draft_is_not_lost() {
        let mut draft = typed("first");
        draft.take();
        draft.paste("second");
        draft.take();
        draft.paste("third");
        press(&mut draft, KeyCode::Up, KeyModifiers::NONE);
        press(&mut draft, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(draft.text(), "first");
        press(&mut draft, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(draft.text(), "first");
        press(&mut draft, KeyCode::Down, KeyModifiers::NONE);
        press(&mut draft, KeyCode::Down, KeyModifiers::NONE);
        assert_eq!(draft.text(), "third");
    }

    #[test]
    fn a_paste_keeps_its_lines_in_one_draft() {
        let mut draft = typed("a");
        draft.paste("b\r\nc\rd");
        assert_eq!(draft.text(), "ab\nc\nd");
    }

    #[test]
    fn a_new_line_is_typed_with_alt_enter_or_control_j() {
        let mut draft = typed("a");
        press(&mut draft, KeyCode::Enter, KeyModifiers::ALT);
        press(&mut draft, KeyCode::Char('j'), KeyModifiers::CONTROL);
        assert_eq!(draft.text(), "a\n\n");
    }

    #[test]
    fn long_lines_break_and_the_cursor_follows() {
        let mut draft = typed("abcdef");
        assert_eq!(
            draft.rows(4),
            Rows {
                rows: vec!["abcd".into(), "ef".into()],
                row: 1,
                column: 2
            }
        );
        draft.paste("gh");
        assert_eq!(
            draft.rows(4),
            Rows {
                rows: vec!["abcd".into(), "efgh".into(), String::new()],
                row: 2,
                column: 0
            }
        );
        press(&mut draft, KeyCode::Home, KeyModifiers::NONE);
        assert_eq!(
            draft.rows(4),
            Rows {
                rows: vec!["abcd".into(), "efgh".into()],
                row: 0,
                column: 0
            }
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let draft = typed("日本語");
        assert_eq!(
            draft.rows(5),
            Rows {
                rows: vec!["日本".into(), "語".into()],
                row: 1,
                column: 2
            }
        );
    }

    #[test]
    fn pasted_control_characters_are_visible_and_still_sent() {
        let mut draft = Draft::new();
        draft.paste("a\u{1b}[2J\tb");
        assert_eq!(draft.rows(40).rows, ["a␛[2J␉b"]);
        assert_eq!(draft.text(), "a\u{1b}[2J\tb");
    }
}
