//! One session as a client follows it: frames in, lines for the scrollback out, and between them the state that the live area
//! shows. Survives the loss of the connection: what follows the last event seen continues it, nothing missing and nothing twice.

mod open;
mod state;

pub(crate) use state::{Call, Now, State};

use crate::paint::Look;
use crate::transcript::Scribe;
use open::OpenItems;
use protocol::frame::{Delta, Snapshot};
use protocol::method::SessionInfo;
use protocol::{Envelope, Event, Frame, Settings};
use ratatui::text::Line;

/// A session that is followed.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) state: State,
    pub(crate) open: OpenItems,
    scribe: Scribe,
    /// A snapshot has come: what follows it changes the state.
    caught_up: bool,
    /// No input was ever accepted, as far as was seen.
    untouched: bool,
}

impl Session {
    /// A session whose frames are to come; with a `width` prose is wrapped at it.
    pub(crate) fn new(info: SessionInfo, look: Look, width: Option<u16>) -> Self {
        let mut state = State::new(
            info.id,
            info.cwd,
            Settings {
                model: info.model,
                mode: info.mode,
                mode_until: info.mode_until,
                ..Settings::default()
            },
        );
        state.name = info.name;
        state.added_roots = info.added_roots;
        Self {
            state,
            open: OpenItems::default(),
            scribe: Scribe::new(look, width).with_own(std::process::id()),
            caught_up: false,
            untouched: true,
        }
    }

    /// Whether the head was reached and the connection stands.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// Whether no input was ever accepted, as far as was seen.
    pub(crate) fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// The connection is gone: what comes next is history, until another snapshot.
    pub(crate) fn disconnected(&mut self) {
        self.caught_up = false;
        self.state.clients.clear();
    }

    /// From here on prose is wrapped at `width`.
    pub(crate) fn set_width(&mut self, width: u16) {
        self.scribe.set_width(Some(width));
    }

    /// What a frame adds to the scrollback.
    pub(crate) fn frame(&mut self, frame: Frame, now: Now) -> Vec<Line<'static>> {
        match frame {
            Frame::Event(envelope) => self.event(&envelope, now),
            Frame::Snapshot(snapshot) => self.snapshot(*snapshot, now),
            Frame::Delta(delta) => self.delta(delta),
            Frame::Presence(presence) => {
                self.state.clients = presence.clients;
                Vec::new()
            }
            Frame::End(_) | Frame::Unknown(_) => Vec::new(),
        }
    }

    /// Lines of the client itself, such as the answer to a command.
    pub(crate) fn aside(&mut self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        self.scribe.aside(lines)
    }

    /// The last line of the reply that is still open, as it would be written now.
    pub(crate) fn open_line(&self) -> Vec<Line<'static>> {
        let last = self.open.iter().rev().find_map(|open| Some((open, open.reply_type()?)));
        last.map(|(open, item_type)| self.scribe.open_line(&open.item, item_type, open.start, &open.text))
            .unwrap_or_default()
    }

    fn event(&mut self, envelope: &Envelope, now: Now) -> Vec<Line<'static>> {
        if envelope.seq <= self.state.head {
            return Vec::new();
        }
        self.state.head = envelope.seq;
        let lines = self.scribe.event(envelope);
        if self.caught_up {
            self.state.event(envelope, now);
        }
        match envelope.event() {
            Some(Event::ItemCompleted(item)) => self.open.close(item.item.as_str()),
            Some(Event::ToolRequested(call)) => self.open.close(call.item.as_str()),
            Some(Event::ToolCompleted(done)) => self.open.close(done.call.as_str()),
            Some(Event::JobEnded(ended)) => self.open.close(ended.job.as_str()),
            Some(Event::StepStarted(_) | Event::StepFailed(_)) => self.open.close_reply(),
            Some(Event::TurnCompleted(_)) => self.open.clear(),
            Some(Event::InputAccepted(_)) => self.untouched = false,
            Some(Event::StepCompleted(step)) => {
                self.state.answered_by = Some(step.model.profile);
                self.open.close_reply();
            }
            _ => {}
        }
        lines
    }

    fn snapshot(&mut self, mut snapshot: Snapshot, now: Now) -> Vec<Line<'static>> {
        self.untouched &= snapshot.turn.is_none() && snapshot.queue.is_empty();
        self.open.replace(std::mem::take(&mut snapshot.open));
        self.state.snapshot(snapshot, now);
        self.caught_up = true;
        self.flow()
    }

    fn delta(&mut self, delta: Delta) -> Vec<Line<'static>> {
        self.open.delta(delta);
        self.flow()
    }

    /// Lets the complete lines of the open reply flow out. An item that another follows hardly grows any more: all of it goes,
    /// so that the order on the screen is the reply's.
    fn flow(&mut self) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut written = Vec::new();
        let mut replies = self
            .open
            .iter()
            .filter_map(|open| Some((open, open.reply_type()?)))
            .peekable();
        while let Some((open, item_type)) = replies.next() {
            let (start, text) = (open.start, open.text.as_str());
            if start > self.scribe.written(&open.item) {
                // Its beginning is not known: it waits for its closing event, and so does what follows it.
                break;
            }
            lines.extend(match replies.peek() {
                Some(_) => self.scribe.grow_whole(&open.item, item_type, start, text),
                None => self.scribe.grow(&open.item, item_type, start, text),
            });
            written.push((open.item.clone(), self.scribe.written(&open.item)));
        }
        drop(replies);
        for (item, bytes) in written {
            self.open.forget_written(&item, bytes);
        }
        lines
    }
}
