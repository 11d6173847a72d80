//! The client's own state and what changes it: keys, news of the session, replies to calls. No terminal, no socket, no clock:
//! moments are handed in, effects are handed out, and finished lines gather in [`App::take_finished`].
//!
//! [`answer`] holds the question that is shown, [`keys`] what each key does, [`commands`] what slash commands do, [`reports`]
//! what they show.

mod answer;
mod commands;
mod keys;
mod reports;
#[cfg(test)]
mod tests;

pub(crate) use answer::{Ask, Focus};

use crate::command::{Command, completions};
use crate::draft::Draft;
use crate::paint::{self, Look};
use crate::request::{Effect, News, Reply, Request, Which};
use crate::screen::Size;
use crate::session::{Now, Session};
use crate::view;
use protocol::attention::sequence;
use protocol::client::ClientError;
use protocol::display::{Form, display};
use protocol::event::{Delivery, Event, TurnOutcome};
use protocol::frame::{End, EndReason};
use protocol::method::{Hello, LocalDecision, SessionInfo};
use protocol::wording;
use protocol::{ApprovalId, ErrorKind, Frame, InputId, Mode, SessionId, Time, short};
use ratatui::text::Line;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Finished lines that wait for the next drawing before no more news is read: about what a fast reply makes between two.
const FINISHED: usize = 2000;

/// How long somebody who gave a sign is taken to look. The focus alone says little: tmux reports that it came when a client
/// attaches, and unless told otherwise never that it went.
const LOOKS: Duration = Duration::from_secs(60);

/// Everything the client knows.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) session: Session,
    pub(crate) draft: Draft,
    /// The question that is shown.
    pub(crate) ask: Option<Ask>,
    /// Which completion is chosen, and whether the list was closed.
    pub(crate) list: List,
    /// What the person should know right now, until the next key.
    pub(crate) hint: Option<String>,
    /// The connection to the daemon is gone, for this reason.
    pub(crate) lost: Option<String>,
    pub(crate) hello: Hello,
    look: Look,
    width: u16,
    finished: Vec<Line<'static>>,
    /// Answered here; the daemon's word is on its way.
    answered: HashSet<ApprovalId>,
    /// Printed whole into the scrollback, because the live area is too small for them.
    printed: HashSet<ApprovalId>,
    /// Names of the models as they were listed last, for `/model NUMBER`.
    models: Vec<String>,
    /// Sessions made by this client in this run.
    made: HashSet<SessionId>,
    last_key: Option<Instant>,
    /// When that was, on the wall.
    wall: Time,
    chord: Chord,
    leaving: Leaving,
    /// Since when the terminal has the focus, if it says so at all.
    focused: Option<Instant>,
    /// Why the client ends by itself.
    failure: Option<String>,
}

/// The list of completions.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) chosen: usize,
    closed: bool,
}

/// A key that gives the next one another meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chord {
    None,
    ControlX,
}

/// Whether leaving was asked for once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    Asked,
}

/// What the app is made from.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) hello: Hello,
    pub(crate) info: SessionInfo,
    pub(crate) which: Which,
    pub(crate) look: Look,
    pub(crate) width: u16,
}

impl App {
    /// A client that is about to follow a session.
    pub(crate) fn new(start: Start) -> Self {
        let mut app = Self {
            session: Session::new(start.info.clone(), start.look, Some(start.width)),
            draft: Draft::new(),
            ask: None,
            list: List::default(),
            hint: None,
            lost: None,
            hello: start.hello,
            look: start.look,
            width: start.width,
            finished: Vec::new(),
            answered: HashSet::new(),
            printed: HashSet::new(),
            models: Vec::new(),
            made: HashSet::new(),
            last_key: None,
            wall: Time(0),
            chord: Chord::None,
            leaving: Leaving::No,
            focused: None,
            failure: None,
        };
        app.opened(&start.info, &start.which);
        app
    }

    /// The lines that are finished since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    /// Whether so many finished lines wait to be drawn that no more news should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.finished.len() > FINISHED
    }

    /// Why the client ends by itself, if it does.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The terminal is this wide now.
    pub(crate) fn set_width(&mut self, width: u16) {
        self.width = width;
        self.session.set_width(width);
    }

    /// Makes ready what is shown next: which question, and whether it has to be printed whole first.
    pub(crate) fn prepare(&mut self, size: Size) {
        let waiting = self
            .session
            .state
            .approvals
            .iter()
            .find(|view| !self.answered.contains(&view.id))
            .cloned();
        let Some(view) = waiting else {
            self.ask = None;
            return;
        };
        if self.ask.as_ref().is_none_or(|ask| ask.view.id != view.id) {
            self.ask = Some(Ask::new(view.clone()));
        }
        if !self.printed.contains(&view.id) && !view::fits_live(&view, size, view::input_rows(self, size)) {
            self.printed.insert(view.id.clone());
            self.say(view::whole_question(&view));
        }
    }

    /// Whether the question was printed into the scrollback whole.
    pub(crate) fn is_printed(&self, id: &ApprovalId) -> bool {
        self.printed.contains(id)
    }

    /// Questions that wait for an answer from here.
    pub(crate) fn questions(&self) -> usize {
        self.session
            .state
            .approvals
            .iter()
            .filter(|view| !self.answered.contains(&view.id))
            .count()
    }

    /// The completions of the word that is typed, unless the list was closed.
    pub(crate) fn completions(&self) -> Vec<&'static Command> {
        let text = self.draft.text();
        if self.list.closed || self.is_typing() || !text.starts_with('/') || text.contains([' ', '\n']) {
            return Vec::new();
        }
        completions(&text)
    }

    /// Whether what is typed goes into a draft of the question's own.
    pub(crate) fn is_typing(&self) -> bool {
        self.ask.as_ref().is_some_and(Ask::is_typing)
    }

    /// What came of following the session.
    pub(crate) fn news(&mut self, news: News, now: Now) -> Vec<Effect> {
        match news {
            News::Frame(Frame::End(end)) => return self.ended(end),
            News::Frame(frame) => {
                if matches!(frame, Frame::Snapshot(_)) {
                    self.lost = None;
                    self.answered.clear();
                }
                let ring = self.ring(&frame, now);
                let lines = self.session.frame(frame, now);
                self.finished.extend(lines);
                return ring.into_iter().collect();
            }
            News::Lost(reason) => {
                self.session.disconnected();
                self.lost = Some(reason);
            }
            News::Failed(error) => {
                self.failure = Some(error.to_string());
                return vec![Effect::Leave];
            }
        }
        Vec::new()
    }

    /// The terminal has the focus from now on, or has it no more.
    pub(crate) fn focus(&mut self, here: bool, now: Now) {
        self.focused = here.then_some(now.clock);
    }

    /// Whether a person looks at this terminal, as far as can be known: it has the focus, and got it or a key not long ago.
    fn is_looked_at(&self, now: Now) -> bool {
        let seen = self
            .focused
            .map(|since| self.last_key.map_or(since, |key| key.max(since)));
        seen.is_some_and(|at| now.clock.saturating_duration_since(at) < LOOKS)
    }

    /// Calls a person who does not look to a question, or to the end of a long turn, that just came.
    fn ring(&self, frame: &Frame, now: Now) -> Option<Effect> {
        let Frame::Event(envelope) = frame else { return None };
        if self.is_looked_at(now) || !self.session.is_caught_up() {
            return None;
        }
        let attention = self.hello.attention;
        let text = match envelope.event()? {
            Event::ApprovalRequested(asked) => {
                format!("{} waits for your answer", asked.tool.as_deref().unwrap_or("a turn"))
            }
            Event::TurnCompleted(turn) if turn.outcome != TurnOutcome::Interrupted => {
                let since = self.session.state.turn.as_ref()?.since;
                let took = now.clock.saturating_duration_since(since).as_millis();
                if !attention.is_long(u64::try_from(took).unwrap_or(u64::MAX)) {
                    return None;
                }
                "the turn has ended".to_owned()
            }
            _ => return None,
        };
        let bytes = sequence(attention.signal, &text);
        (!bytes.is_empty()).then_some(Effect::Ring(bytes))
    }

    fn ended(&mut self, end: End) -> Vec<Effect> {
        match end.reason {
            EndReason::Shutdown => {
                self.session.disconnected();
                self.lost = Some("agentd has stopped".to_owned());
                Vec::new()
            }
            EndReason::Storage => {
                self.session.disconnected();
                self.lost = Some("agentd cannot read the session just now".to_owned());
                Vec::new()
            }
            EndReason::Deleted => {
                self.failure = Some("the session was deleted".to_owned());
                vec![Effect::Leave]
            }
            EndReason::Unreadable => {
                self.failure = Some("the session's log cannot be read".to_owned());
                vec![Effect::Leave]
            }
        }
    }

    /// What came of a call.
    pub(crate) fn reply(&mut self, reply: Reply) -> Vec<Effect> {
        match reply {
            Reply::Done => Vec::new(),
            Reply::Sessions(sessions) => {
                let lines = view::session_list(&sessions, &self.session.state.session);
                self.say(lines);
                Vec::new()
            }
            Reply::Models(models) => {
                let lines = view::model_list(&models, &self.session.state);
                self.models = models.into_iter().map(|model| model.name).collect();
                self.say(lines);
                Vec::new()
            }
            Reply::Confirmed(server) => {
                self.hello.local_server = None;
                let text = wording::local_decision(&server, LocalDecision::Use);
                self.say(vec![paint::line(text, paint::dim())]);
                Vec::new()
            }
            Reply::Within(dir) => {
                self.note(&format!("{dir} lies in a directory the session works in already"));
                Vec::new()
            }
            Reply::Opened { info, which } => {
                let left = self.leave_session();
                self.session = Session::new((*info).clone(), self.look, Some(self.width));
                self.ask = None;
                self.finished.push(Line::default());
                self.opened(&info, &which);
                left.into_iter().chain([Effect::Follow(info)]).collect()
            }
            Reply::Failed { request, error } => {
                self.failed(request, &error);
                Vec::new()
            }
        }
    }

    /// A call that failed leaves nothing lost: a text comes back as the draft, a question is asked again.
    fn failed(&mut self, request: Request, error: &ClientError) {
        match request {
            Request::Answer { .. } if error.kind() == Some(ErrorKind::AlreadyResolved) => {
                self.say(vec![paint::line("somebody else was first", paint::dim())]);
                return;
            }
            Request::Answer { approval, .. } => {
                self.answered.remove(&approval.id);
            }
            Request::Send { text, .. } if self.draft.is_empty() => self.draft.set(&text),
            Request::Send { text, .. } => self.say(vec![paint::line(
                format!("not sent: {}", display(&text, Form::Inline)),
                paint::error(),
            )]),
            Request::Delete(_) => return,
            _ => {}
        }
        self.complain(&error.to_string());
    }

    /// The first lines of a session.
    fn opened(&mut self, info: &SessionInfo, which: &Which) {
        if matches!(which, Which::New) {
            self.made.insert(info.id.clone());
        }
        let lines = view::header(info, &self.hello);
        self.say(lines);
    }

    /// What leaving the session takes: nothing is left of one that was made here and never used.
    pub(crate) fn leave_session(&mut self) -> Option<Effect> {
        let state = &self.session.state;
        let unused = self.made.contains(&state.session) && self.session.is_untouched() && self.session.is_caught_up();
        let alone = state.clients.len() <= 1;
        (unused && alone).then(|| Effect::Call(Request::Delete(state.session.clone())))
    }

    /// What a person reads after this client is gone.
    pub(crate) fn farewell(&self) -> Option<String> {
        let state = &self.session.state;
        if self.session.is_untouched() && self.made.contains(&state.session) {
            return None;
        }
        let goes_on = if state.is_busy() { "the turn goes on; " } else { "" };
        Some(format!(
            "{goes_on}come back with: agentctl attach {}",
            short(state.session.as_str())
        ))
    }

    /// Lines of the client's own.
    fn say(&mut self, lines: Vec<Line<'static>>) {
        let lines = self.session.aside(lines);
        self.finished.extend(lines);
    }

    fn complain(&mut self, text: &str) {
        let line = |line: &str| match line.strip_prefix("hint: ") {
            Some(hint) => paint::line(format!("hint: {}", display(hint, Form::Inline)), paint::dim()),
            None => paint::line(format!("error: {}", display(line, Form::Inline)), paint::error()),
        };
        self.say(text.lines().map(line).collect());
    }

    fn send(&mut self, delivery: Delivery) -> Vec<Effect> {
        let text = self.draft.text();
        if text.trim().is_empty() {
            return Vec::new();
        }
        let text = self.draft.take();
        let input_id = InputId(uuid::Uuid::now_v7().to_string());
        let session = self.session.state.session.clone();
        vec![Effect::Call(Request::Send {
            session,
            input_id,
            text,
            delivery,
        })]
    }

    /// The model's name.
    pub(crate) fn model(&self) -> String {
        let state = &self.session.state;
        let model = state
            .settings
            .model
            .as_deref()
            .or(state.answered_by.as_deref())
            .unwrap_or("default model");
        display(model, Form::Inline).into_owned()
    }

    /// What is asked, and when that ends by itself.
    pub(crate) fn mode(&self, now: Time) -> (Mode, Option<Time>) {
        self.session.state.mode(now)
    }
}
