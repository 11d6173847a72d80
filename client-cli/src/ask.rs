//! Asking a person at the terminal the program was started from, whatever its input and output are: one key an answer, a line for
//! what to tell the model. The terminal is put back when the question is over.

use crate::output::Output;
use protocol::attention::{self, Attention};
use protocol::display::{Form, display};
use protocol::event::Choice;
use protocol::frame::ApprovalView;
use protocol::wording::{self, Editing};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use std::cell::Cell;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

/// Longest line a person can type; a terminal's own limit is the same.
const LINE_BYTES: usize = 4096;

/// The terminal that controls this process. It is read as a pipe is: when there is something.
#[derive(Debug, Clone)]
pub(crate) struct Tty {
    keys: Rc<Receiver>,
    /// How the person is to be called to it.
    attention: Rc<Cell<Attention>>,
}

impl Tty {
    /// Opens it; `None` where there is none, or where another job has it.
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
        let tty = Self {
            keys: Rc::new(Receiver::from_owned_fd_unchecked(fd).ok()?),
            attention: Rc::default(),
        };
        tty.is_ours().then_some(tty)
    }

    /// How the person is to be called, as the daemon's configuration says.
    pub(crate) fn attend(&self, attention: Attention) {
        self.attention.set(attention);
    }

    /// Calls the person, who may look elsewhere.
    pub(crate) fn ring(&self, text: &str, output: Output) {
        output.whisper(&attention::sequence(self.attention.get().signal, text));
    }

    /// Calls the person to a turn that has ended, if it took long.
    pub(crate) fn ring_at_end(&self, took: Duration, output: Output) {
        if self
            .attention
            .get()
            .is_long(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
        {
            self.ring("the turn has ended", output);
        }
    }

    /// Whether this process may read it now: a job in the background would be stopped.
    fn is_ours(&self) -> bool {
        rustix::termios::tcgetpgrp(self.keys.as_fd()).is_ok_and(|group| group == rustix::process::getpgrp())
    }

    /// Some bytes. Cancel-safe.
    async fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            self.keys.readable().await?;
            match self.keys.try_read(buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// What a person answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) decision: Choice,
    pub(crate) feedback: Option<String>,
}

/// What is being typed.
#[derive(Debug)]
enum Stage {
    /// One key.
    Key,
    /// Enter, for the rule that is shown.
    Always,
    /// A line for the model, so far.
    Line(Vec<u8>),
}

/// A question that is on the screen.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) view: ApprovalView,
    tty: Tty,
    stage: Stage,
    before: Termios,
    output: Output,
}

/// What a key means.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    Answer(Choice),
    Tell,
    Nothing,
}

impl Question {
    /// Shows the whole of it, then listens. Keys typed before it was to be seen do not count. `None` if the terminal is not ours.
    pub(crate) fn put(view: ApprovalView, tty: &Tty, output: Output) -> Option<Self> {
        if !tty.is_ours() {
            return None;
        }
        let before = rustix::termios::tcgetattr(tty.keys.as_fd()).ok()?;
        let lines = wording::approval_lines(&view);
        tty.ring(&wording::approval_call(&view), output);
        for line in lines {
            output.tell_always(&line);
        }
        let mut question = Self {
            view,
            tty: tty.clone(),
            stage: Stage::Key,
            before,
            output,
        };
        question.listen_for_key();
        Some(question)
    }

    /// The answer; `None` if the terminal is gone. Cancel-safe.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        loop {
            let mut buffer = [0; LINE_BYTES];
            let length = match self.tty.read(&mut buffer).await {
                Ok(0) if matches!(self.stage, Stage::Line(_)) => {
                    self.listen_for_key();
                    continue;
                }
                Ok(0) | Err(_) => return None,
                Ok(length) => length,
            };
            if let Some(reply) = self.take(buffer.get(..length).unwrap_or_default()) {
                return Some(reply);
            }
        }
    }

    fn take(&mut self, typed: &[u8]) -> Option<Reply> {
        match &mut self.stage {
            Stage::Key => match typed
                .iter()
                .map(|key| meaning(*key, &self.view))
                .find(|key| *key != Key::Nothing)?
            {
                Key::Answer(Choice::Always) => {
                    self.stage = Stage::Always;
                    self.output.whisper("\n");
                    self.again();
                    None
                }
                Key::Answer(decision) => {
                    self.output.tell_always(word(decision));
                    Some(Reply {
                        decision,
                        feedback: None,
                    })
                }
                _ => {
                    self.listen_for_line();
                    None
                }
            },
            Stage::Always => {
                let answer = typed.iter().any(|key| matches!(key, b'\n' | b'\r'));
                if answer {
                    self.output.tell_always(word(Choice::Always));
                    return Some(Reply {
                        decision: Choice::Always,
                        feedback: None,
                    });
                }
                self.output.whisper("\n");
                self.stage = Stage::Key;
                self.again();
                None
            }
            Stage::Line(line) => {
                line.extend(typed);
                let text = String::from_utf8_lossy(line);
                let feedback = text.split_once('\n').map(|(first, _)| first.trim().to_owned())?;
                if feedback.is_empty() {
                    self.listen_for_key();
                    return None;
                }
                Some(Reply {
                    decision: Choice::Deny,
                    feedback: Some(feedback),
                })
            }
        }
    }

    fn listen_for_key(&mut self) {
        let mut keys = self.before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        self.set(&keys);
        self.stage = Stage::Key;
        self.again();
    }

    /// Says once more what may be typed, after something else was written.
    pub(crate) fn again(&self) {
        match self.stage {
            Stage::Key => self
                .output
                .whisper(&format!("{}: ", wording::key_line(&self.view, Editing::Elsewhere))),
            Stage::Always => self.output.whisper(&format!(
                "Enter writes this rule of yours: {}; any other key goes back: ",
                wording::always_rule(&self.view)
                    .map(|rule| display(rule, Form::Inline))
                    .unwrap_or_default()
            )),
            Stage::Line(_) => self.output.whisper("tell it: "),
        }
    }

    fn listen_for_line(&mut self) {
        let before = self.before.clone();
        self.set(&before);
        self.stage = Stage::Line(Vec::new());
        self.output.whisper("\n");
        self.again();
    }

    fn set(&self, modes: &Termios) {
        let fd = self.tty.keys.as_fd();
        let _ = rustix::termios::tcflush(fd, QueueSelector::IFlush);
        let _ = rustix::termios::tcsetattr(fd, OptionalActions::Now, modes);
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(self.tty.keys.as_fd(), OptionalActions::Now, &self.before);
    }
}

/// Asks something that `y` or `n` answers. Keys typed before do not count; the terminal is put back also if the question is dropped.
/// `None` if nobody can be asked there.
pub(crate) async fn yes_or_no(tty: &Tty, output: Output, question: &str) -> Option<bool> {
    if !tty.is_ours() {
        return None;
    }
    let keys = Keys::take(tty)?;
    output.whisper(&format!("{question} y yes, n no: "));
    loop {
        let mut buffer = [0; LINE_BYTES];
        let length = match keys.tty.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => length,
        };
        let typed = buffer.get(..length).unwrap_or_default();
        let answer = typed.iter().find_map(|key| match key {
            b'y' => Some(true),
            b'n' => Some(false),
            _ => None,
        });
        if let Some(answer) = answer {
            output.tell_always(if answer { "yes" } else { "no" });
            return Some(answer);
        }
    }
}

/// The terminal while it gives single keys and shows none of them.
struct Keys {
    tty: Tty,
    before: Termios,
}

impl Keys {
    fn take(tty: &Tty) -> Option<Self> {
        let before = rustix::termios::tcgetattr(tty.keys.as_fd()).ok()?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        let _ = rustix::termios::tcflush(tty.keys.as_fd(), QueueSelector::IFlush);
        rustix::termios::tcsetattr(tty.keys.as_fd(), OptionalActions::Now, &modes).ok()?;
        Some(Self {
            tty: tty.clone(),
            before,
        })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(self.tty.keys.as_fd(), OptionalActions::Now, &self.before);
    }
}

/// The answer to the question, if one is put. Cancel-safe.
pub(crate) async fn reply(question: &mut Option<Question>) -> Option<Reply> {
    match question {
        Some(question) => question.reply().await,
        None => std::future::pending().await,
    }
}

fn word(decision: Choice) -> &'static str {
    match decision {
        Choice::Once => "once",
        Choice::Session => "for this session",
        Choice::Always => "always",
        Choice::Deny => "no",
    }
}

fn meaning(key: u8, view: &ApprovalView) -> Key {
    match key {
        b'y' => Key::Answer(Choice::Once),
        b's' if wording::session_rule(view).is_some() => Key::Answer(Choice::Session),
        b'a' if wording::always_rule(view).is_some() => Key::Answer(Choice::Always),
        b'n' => Key::Answer(Choice::Deny),
        b't' if view.call.is_some() => Key::Tell,
        _ => Key::Nothing,
    }
}
