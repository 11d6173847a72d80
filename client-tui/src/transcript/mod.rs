//! A session's log as a person reads it: events in, styled lines out. Pure, and the same for the live view, for what an attach
//! replays and for `agentctl show`.
//!
//! Parts: [`pen`] writes a reply while it still grows, [`call`] words tool calls and results, [`note`] everything that is said
//! in one line, [`scribe`] puts them in order with the blank lines between.

mod call;
mod note;
mod pen;
mod scribe;

pub(crate) use call::call_line;
pub(crate) use scribe::Scribe;

use crate::paint::{Look, ansi};
use protocol::Envelope;

/// The transcript of `events`, a terminal line each, without line ends. With a `width` in columns prose is wrapped at it. With
/// [`Look::Plain`] no line holds an escape sequence; with any look, none holds a control character of the session's.
pub fn transcript(events: &[Envelope], width: Option<u16>, look: Look) -> Vec<String> {
    let mut scribe = Scribe::new(look, width);
    let mut lines: Vec<_> = events.iter().flat_map(|event| scribe.event(event)).collect();
    lines.extend(scribe.end());
    lines.iter().map(|line| ansi(line, look)).collect()
}
