//! What the slash commands do. A command that cannot be understood says so and stays in the draft.

use super::App;
use crate::command::{Action, COMMANDS, Found, find};
use crate::paint;
use crate::request::{Effect, Request, Which};
use crate::wrap::wrap;
use protocol::display::{Form, display};
use protocol::event::Choice;
use protocol::method::UpdateParams;
use protocol::{JobId, Mode, short, wording};
use ratatui::text::{Line, Span};

/// Keys that `/help` explains.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while a turn runs: steer it"),
    ("Tab", "queue for the next turn"),
    ("Ctrl-X Enter", "interrupt the turn and send"),
    ("Alt-Enter, Ctrl-J", "new line"),
    ("Up, Down", "what was sent before"),
    ("Ctrl-Y", "move to the question that waits; Esc back"),
    ("Ctrl-C", "interrupt, else clear what is typed, else leave"),
    ("Ctrl-D", "leave; the session goes on"),
];

/// Column where the explanations of `/help` begin.
const HELP_COLUMN: usize = 29;

impl App {
    /// Carries out the command that `text` begins with.
    pub(super) fn command(&mut self, text: &str) -> Vec<Effect> {
        let (word, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let chosen = self.completions().get(self.list.chosen).copied();
        let command = match (find(word), chosen) {
            (Found::Command(command), _) => command,
            (Found::Several(_), Some(chosen)) => chosen,
            (Found::Several(names), None) => {
                self.hint = Some(format!("{word} could be {}", names.join(" or ")));
                return Vec::new();
            }
            (Found::Nothing, _) => {
                self.hint = Some(format!(
                    "there is no {}; /help shows what there is",
                    display(word, Form::Inline)
                ));
                return Vec::new();
            }
        };
        self.draft.take();
        self.list.chosen = 0;
        self.act(command.action, argument.trim())
    }

    fn act(&mut self, action: Action, argument: &str) -> Vec<Effect> {
        let session = self.session.state.session.clone();
        match action {
            Action::Help => self.help(),
            Action::Status => self.status(),
            Action::Model => return self.set_model(argument),
            Action::Mode => return self.set_mode(argument),
            Action::Approve => return self.approve(argument),
            Action::Deny => return self.deny(argument),
            Action::Queue => return self.queue(argument),
            Action::Ps => self.ps(),
            Action::Todo => self.todo(),
            Action::Interrupt if !argument.is_empty() => {
                let job = JobId(argument.to_owned());
                return vec![Effect::Call(Request::KillJob { session, job })];
            }
            Action::Interrupt => match &self.session.state.turn {
                Some(turn) => {
                    return vec![Effect::Call(Request::Interrupt {
                        session,
                        turn: turn.id.clone(),
                    })];
                }
                None => self.note("no turn runs; /ps shows what does"),
            },
            Action::Continue => return vec![Effect::Call(Request::ResumeTurn(session))],
            Action::AddDir => return self.add_dir(argument),
            Action::New => return vec![Effect::Call(Request::Open(Which::New))],
            Action::Resume if argument.is_empty() => return vec![Effect::Call(Request::Sessions)],
            Action::Resume => return vec![Effect::Call(Request::Open(Which::Named(argument.to_owned())))],
            Action::Quit => return vec![Effect::Leave],
        }
        Vec::new()
    }

    fn help(&mut self) {
        let row = |name: &str, help: &str| {
            let name = Span::styled(format!("  {name:<26} "), paint::bold());
            Line::from(vec![name, Span::raw(help.to_owned())])
        };
        let mut lines: Vec<Line<'static>> = COMMANDS
            .iter()
            .map(|c| row(&format!("{} {}", c.name, c.arguments), c.help))
            .collect();
        lines.extend(KEYS.iter().map(|(key, help)| row(key, help)));
        let lines = lines
            .iter()
            .flat_map(|line| wrap(line, self.width, HELP_COLUMN))
            .collect();
        self.say(lines);
    }

    fn set_model(&mut self, name: &str) -> Vec<Effect> {
        if name.is_empty() {
            return vec![Effect::Call(Request::Models)];
        }
        let listed = name
            .parse::<usize>()
            .ok()
            .and_then(|number| self.models.get(number.checked_sub(1)?));
        // Whoever names the server that was shown with address and owner says that it may answer.
        let local = self.hello.local_server.as_ref().filter(|server| server.name == name);
        let confirm = local.map(|server| Effect::Call(Request::Confirm(Box::new(server.clone()))));
        if confirm.is_some() && self.session.state.settings.model.is_none() {
            // It is the default from then on.
            return confirm.into_iter().collect();
        }
        let mut update = self.update();
        update.model = Some(listed.map_or(name, String::as_str).to_owned());
        confirm
            .into_iter()
            .chain([Effect::Call(Request::Update(Box::new(update)))])
            .collect()
    }

    fn set_mode(&mut self, word: &str) -> Vec<Effect> {
        let Some((mode, for_ms)) = mode_for(word) else {
            let (mode, until) = self.mode(self.wall);
            match word {
                "" => self.note(&format!("mode: {}", wording::mode_until(mode, until, self.wall))),
                _ => self.note(&format!(
                    "there is no mode {word}; modes are ask, edits, all, none, or a time such as 10m for which all is allowed"
                )),
            }
            return Vec::new();
        };
        let mut update = self.update();
        (update.mode, update.mode_for_ms) = (Some(mode), for_ms);
        vec![Effect::Call(Request::Update(Box::new(update)))]
    }

    fn add_dir(&mut self, dir: &str) -> Vec<Effect> {
        if dir.is_empty() {
            self.note("name a directory: /add-dir DIR; /status shows those the session works in");
            return Vec::new();
        }
        let state = &self.session.state;
        vec![Effect::Call(Request::AddRoot {
            session: state.session.clone(),
            dir: dir.to_owned(),
            known: state.added_roots.len(),
        })]
    }

    fn update(&self) -> UpdateParams {
        UpdateParams {
            session: self.session.state.session.to_string(),
            ..UpdateParams::default()
        }
    }

    fn approve(&mut self, argument: &str) -> Vec<Effect> {
        if mode_for(argument).is_some() {
            return self.set_mode(argument);
        }
        if let Some(ask) = &self.ask
            && !argument.is_empty()
            && ask.view.id.as_str() != argument
            && short(ask.view.id.as_str()) != argument
        {
            self.note("another call waits first; its question is shown");
            return Vec::new();
        }
        self.answer_or_say(Choice::Once, None)
    }

    fn deny(&mut self, argument: &str) -> Vec<Effect> {
        let feedback = (!argument.is_empty()).then(|| argument.to_owned());
        self.answer_or_say(Choice::Deny, feedback)
    }

    fn answer_or_say(&mut self, decision: Choice, feedback: Option<String>) -> Vec<Effect> {
        if self.ask.is_none() {
            self.note("nothing waits for an answer");
        }
        self.answer(decision, feedback, None)
    }

    fn queue(&mut self, argument: &str) -> Vec<Effect> {
        let session = self.session.state.session.clone();
        if argument == "resume" {
            return vec![Effect::Call(Request::ResumeQueue(session))];
        }
        if let Some(number) = argument.strip_prefix("cancel") {
            let place = number
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|number| number.checked_sub(1));
            let waiting = place.and_then(|place| self.session.state.queue.get(place));
            let Some(waiting) = waiting else {
                self.note("which one? /queue shows their numbers");
                return Vec::new();
            };
            return vec![Effect::Call(Request::CancelQueued {
                session,
                input_id: waiting.input_id.clone(),
            })];
        }
        let mut lines: Vec<Line<'static>> = (1..)
            .zip(&self.session.state.queue)
            .map(|(number, waiting)| Line::from(format!("  {number}. {}", crate::view::queued_words(waiting))))
            .collect();
        if lines.is_empty() {
            lines.push(paint::line("no input waits", paint::dim()));
        }
        self.say(lines);
        Vec::new()
    }

    pub(super) fn note(&mut self, text: &str) {
        self.say(vec![paint::line(
            display(text, Form::Inline).into_owned(),
            paint::dim(),
        )]);
    }
}

/// A mode, or `all` for a time such as `10m`.
fn mode_for(word: &str) -> Option<(Mode, Option<u64>)> {
    let mode = match word {
        "ask" => Mode::Ask,
        "edits" => Mode::Edits,
        "all" => Mode::All,
        "none" => Mode::None,
        _ => {
            let time: jiff::SignedDuration = word.parse().ok()?;
            let ms = u64::try_from(time.as_millis()).ok().filter(|ms| *ms > 0)?;
            return Some((Mode::All, Some(ms)));
        }
    };
    Some((mode, None))
}
