//! Writes one piece of a reply while it grows. Complete source lines become rows once and never change; the line that is still
//! open can be looked at without being written. The closing event then adds only what is not written yet.

use crate::markdown::Markdown;
use crate::paint::{self, Look};
use crate::wrap::wrap;
use protocol::display::{Form, display};
use protocol::event::ItemType;
use ratatui::text::Line;

/// How far one item has been written, and how its next line looks.
#[derive(Debug, Clone)]
pub(crate) struct Pen {
    /// Bytes of the item's text that are written.
    written: u64,
    style: Style,
    width: Option<u16>,
    /// Empty lines held back until a line follows, so that a reply neither begins nor ends with them.
    empty: usize,
    started: bool,
}

#[derive(Debug, Clone)]
enum Style {
    Markdown(Markdown),
    /// Reasoning: dimmed, as it was written.
    Dim,
}

impl Pen {
    /// The beginning of an item.
    pub(crate) fn new(item_type: ItemType, look: Look, width: Option<u16>) -> Self {
        let style = match item_type {
            ItemType::Reasoning => Style::Dim,
            ItemType::Text | ItemType::Refusal | ItemType::Opaque => Style::Markdown(Markdown::new(look, width)),
        };
        Self {
            written: 0,
            style,
            width,
            empty: 0,
            started: false,
        }
    }

    /// Bytes of the item's text that are written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// From here on prose is wrapped at `width`.
    pub(crate) fn set_width(&mut self, width: Option<u16>) {
        self.width = width;
        if let Style::Markdown(markdown) = &mut self.style {
            markdown.set_width(width);
        }
    }

    /// Writes the complete lines of the item's text, of which `text` is known from byte `start` on. Nothing, if what comes next
    /// is not known.
    pub(crate) fn grow(&mut self, start: u64, text: &str) -> Vec<Line<'static>> {
        let Some(new) = self.unwritten(start, text) else {
            return Vec::new();
        };
        let Some(end) = new.rfind('\n') else { return Vec::new() };
        let complete = new.get(..end).unwrap_or_default().to_owned();
        self.written += end as u64 + 1;
        self.lines(&complete)
    }

    /// Writes the rest of the item's whole text.
    pub(crate) fn finish(&mut self, start: u64, text: &str) -> Vec<Line<'static>> {
        let Some(new) = self.unwritten(start, text).filter(|new| !new.is_empty()) else {
            return Vec::new();
        };
        let new = new.to_owned();
        self.written += new.len() as u64;
        self.lines(&new)
    }

    /// The line that is still open, as it would be written now.
    pub(crate) fn open_line(&self, start: u64, text: &str) -> Vec<Line<'static>> {
        let new = match self.unwritten(start, text) {
            Some(new) => new,
            // The text before is not known yet: show the end of what is.
            None => text,
        };
        let open = new.rsplit('\n').next().unwrap_or_default();
        if open.trim().is_empty() {
            Vec::new()
        } else {
            self.clone().lines(open)
        }
    }

    /// What of the text from byte `start` on is not written yet; `None` if text is missing between.
    fn unwritten<'a>(&self, start: u64, text: &'a str) -> Option<&'a str> {
        let known = usize::try_from(self.written.checked_sub(start)?).ok()?;
        text.get(known..)
    }

    fn lines(&mut self, text: &str) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for source in text.split('\n') {
            if source.trim().is_empty() {
                self.empty += 1;
                continue;
            }
            let empty = if self.started { self.empty } else { 0 };
            rows.extend(std::iter::repeat_n(Line::default(), empty));
            self.empty = 0;
            self.started = true;
            rows.extend(self.line(source));
        }
        rows
    }

    fn line(&mut self, source: &str) -> Vec<Line<'static>> {
        match &mut self.style {
            Style::Markdown(markdown) => markdown.line(source),
            Style::Dim => {
                let line = paint::line(display(source, Form::Prose), paint::dim());
                self.width
                    .map_or_else(|| vec![line.clone()], |width| wrap(&line, width, 0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn pen() -> Pen {
        Pen::new(ItemType::Text, Look::Colour, Some(40))
    }

    #[test]
    fn however_a_text_arrives_each_line_is_written_once() {
        let text = "\n\n# One\n\ntwo **bold**\n```\ncode\n\n```\nlast line\n\n";
        let whole = texts(&pen().finish(0, text));
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut pen = pen();
            let mut rows = pen.grow(0, text.get(..cut).unwrap_or_default());
            rows.extend(pen.finish(0, text));
            assert_eq!(texts(&rows), whole, "cut at {cut}");
        }
    }

    #[test]
    fn text_whose_beginning_is_unknown_waits_for_the_whole() {
        let mut pen = pen();
        assert!(pen.grow(10, "middle\nend").is_empty());
        assert_eq!(texts(&pen.open_line(10, "middle\nend")), ["end"]);
        assert_eq!(
            texts(&pen.finish(0, "0123456789middle\nend")),
            ["0123456789middle", "end"]
        );
    }

    #[test]
    fn text_whose_written_beginning_was_dropped_goes_on() {
        let mut pen = pen();
        assert_eq!(texts(&pen.grow(0, "one\ntw")), ["one"]);
        assert_eq!(texts(&pen.grow(4, "two\nthree")), ["two"]);
        assert_eq!(texts(&pen.finish(0, "one\ntwo\nthree")), ["three"]);
    }

    #[test]
    fn looking_at_the_open_line_writes_nothing() {
        let mut pen = pen();
        pen.grow(0, "one\ntwo");
        assert_eq!(texts(&pen.open_line(0, "one\ntwo")), ["two"]);
        assert_eq!(texts(&pen.finish(0, "one\ntwo")), ["two"]);
    }

    #[test]
    fn a_finished_item_is_not_written_again() {
        let mut pen = pen();
        assert_eq!(pen.finish(0, "one").len(), 1);
        assert!(pen.finish(0, "one").is_empty());
    }
}
