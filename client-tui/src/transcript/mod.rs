//! A session's log as a person reads it: events in, styled lines out. Pure, and the same for the live view, for what an attach
//! replays and for `agentctl show`.
//!
//! Parts: [`pen`] writes a reply while it still grows, [`call`] words tool calls and results, [`detail`] what these leave out,
//! [`note`] everything that is said in one line, [`scribe`] puts them in order with the blank lines between.

mod call;
mod detail;
mod note;
mod pen;
mod scribe;

pub(crate) use call::call_line;
pub(crate) use scribe::Scribe;

pub use detail::Detail;

use crate::paint::{Look, ansi};
use protocol::Envelope;

/// A transcript that is written event by event. Each event and the end answer terminal lines without line ends.
#[derive(Debug)]
pub struct Transcript {
    scribe: Scribe,
    look: Look,
}

impl Transcript {
    /// The beginning. With a `width` in columns prose is wrapped at it. With [`Look::Plain`] no line holds an escape sequence;
    /// with any look, none holds a control character of the session's.
    #[must_use]
    pub fn new(width: Option<u16>, look: Look, detail: Detail) -> Self {
        Self {
            scribe: Scribe::new(look, width).with_detail(detail),
            look,
        }
    }

    /// The lines of the next event; `whole` is the text of the blob that it names, if the reader has that.
    pub fn event(&mut self, event: &Envelope, whole: Option<&str>) -> Vec<String> {
        self.scribe.set_whole(whole);
        let lines = self.scribe.event(event);
        self.scribe.set_whole(None);
        self.shown(&lines)
    }

    /// What stands at the end.
    pub fn end(&mut self) -> Vec<String> {
        let lines = self.scribe.end();
        self.shown(&lines)
    }

    fn shown(&self, lines: &[ratatui::text::Line<'_>]) -> Vec<String> {
        lines.iter().map(|line| ansi(line, self.look)).collect()
    }
}
