//! What each key does. The order of the questions is the order of precedence: leaving and interrupting, the words for a denial,
//! the question, the list of completions, then the draft.

use super::{App, Chord, Leaving};
use crate::app::answer::{Ask, Focus};
use crate::draft::Draft;
use crate::request::{Effect, Request};
use crate::session::Now;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use protocol::event::{Choice, Delivery};
use protocol::wording;
use serde_json::Value;
use std::time::Instant;

impl App {
    /// A key was pressed.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Now) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let before = self.last_key.replace(now.clock);
        self.wall = now.wall;
        let leaving = std::mem::replace(&mut self.leaving, Leaving::No);
        let chord = std::mem::replace(&mut self.chord, Chord::None);
        self.hint = None;
        if chord == Chord::ControlX && key.code == KeyCode::Enter {
            return self.send(Delivery::Interrupt);
        }
        if let Some(effects) = self.control_key(key, leaving) {
            return effects;
        }
        if self.is_typing() {
            return self.typing_key(key);
        }
        if matches!(
            self.ask,
            Some(Ask {
                focus: Focus::Always,
                ..
            })
        ) {
            return self.always_key(key);
        }
        if let Some(effects) = self.question_key(key, before, now.clock) {
            return effects;
        }
        if self.list_key(key) {
            return Vec::new();
        }
        self.draft_key(key)
    }

    /// Something was pasted: it is text, whatever it looks like.
    pub(crate) fn paste(&mut self, text: &str, now: Now) {
        self.last_key = Some(now.clock);
        self.hint = None;
        self.list.closed = false;
        match self.ask.as_mut().map(|ask| &mut ask.focus) {
            Some(Focus::Telling(words) | Focus::Editing(words)) => words.paste(text),
            _ => self.draft.paste(text),
        }
    }

    fn control_key(&mut self, key: KeyEvent, leaving: Leaving) -> Option<Vec<Effect>> {
        if !key.modifiers.contains(KeyModifiers::CONTROL) {
            return None;
        }
        let KeyCode::Char(letter) = key.code else { return None };
        match letter {
            'c' => Some(self.control_c(leaving)),
            'd' if self.draft.is_empty() && !self.is_typing() => Some(vec![Effect::Leave]),
            'z' => Some(vec![Effect::Suspend]),
            'l' => Some(vec![Effect::Redraw]),
            'x' => {
                self.chord = Chord::ControlX;
                self.hint = Some("Ctrl-X: Enter interrupts the turn and sends".to_owned());
                Some(Vec::new())
            }
            'y' => {
                match &mut self.ask {
                    Some(ask) => ask.focus = Focus::Question,
                    None => self.hint = Some("nothing waits for an answer".to_owned()),
                }
                Some(Vec::new())
            }
            _ => None,
        }
    }

    fn control_c(&mut self, leaving: Leaving) -> Vec<Effect> {
        if let Some(turn) = &self.session.state.turn {
            let session = self.session.state.session.clone();
            return vec![Effect::Call(Request::Interrupt {
                session,
                turn: turn.id.clone(),
            })];
        }
        if !self.draft.is_empty() {
            self.draft.clear();
            return Vec::new();
        }
        if leaving == Leaving::Asked {
            return vec![Effect::Leave];
        }
        self.leaving = Leaving::Asked;
        self.hint = Some("Ctrl-C again to leave".to_owned());
        Vec::new()
    }

    /// A key while words for the model are typed, or the call is changed.
    fn typing_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(Ask { focus, .. }) = &mut self.ask else {
            return Vec::new();
        };
        let (Focus::Telling(words) | Focus::Editing(words)) = focus else {
            return Vec::new();
        };
        match key.code {
            KeyCode::Esc => *focus = Focus::Draft,
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = words.text();
                return match focus {
                    Focus::Editing(_) => self.answer_edited(&text),
                    _ if text.trim().is_empty() => Vec::new(),
                    _ => self.answer(Choice::Deny, Some(text.trim().to_owned()), None),
                };
            }
            _ => _ = words.key(key),
        }
        Vec::new()
    }

    /// The rule is on the screen: Enter writes it, everything else goes back.
    fn always_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.code == KeyCode::Enter && key.modifiers.is_empty() {
            return self.answer(Choice::Always, None, None);
        }
        if let Some(ask) = &mut self.ask {
            ask.focus = Focus::Draft;
        }
        Vec::new()
    }

    fn answer_edited(&mut self, text: &str) -> Vec<Effect> {
        match self.asked_arguments().map(|arguments| Ask::edited(&arguments, text)) {
            Some(Ok(arguments)) => self.answer(Choice::Once, None, Some(arguments)),
            Some(Err(reason)) => {
                self.hint = Some(reason);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Arguments of the call that is asked about.
    fn asked_arguments(&self) -> Option<Value> {
        let id = self.ask.as_ref()?.view.call.as_ref()?;
        let call = self.session.state.calls.iter().find(|call| call.view.call == *id)?;
        Some(call.view.arguments.clone())
    }

    fn question_key(&mut self, key: KeyEvent, before: Option<Instant>, now: Instant) -> Option<Vec<Effect>> {
        let arguments = self.asked_arguments();
        let ask = self.ask.as_mut()?;
        let focused = matches!(ask.focus, Focus::Question);
        if focused && key.code == KeyCode::Esc {
            ask.focus = Focus::Draft;
            return Some(Vec::new());
        }
        if !key.modifiers.is_empty() || !ask.listens(&self.draft, before, now) {
            return None;
        }
        match key.code {
            KeyCode::Char('y') => Some(self.answer(Choice::Once, None, None)),
            KeyCode::Char('s') if wording::session_rule(&ask.view).is_some() => {
                Some(self.answer(Choice::Session, None, None))
            }
            KeyCode::Char('a') if wording::always_rule(&ask.view).is_some() => {
                ask.focus = Focus::Always;
                Some(Vec::new())
            }
            KeyCode::Char('n') => Some(self.answer(Choice::Deny, None, None)),
            KeyCode::Char('t') if ask.view.call.is_some() => {
                ask.focus = Focus::Telling(Box::new(Draft::new()));
                Some(Vec::new())
            }
            KeyCode::Char('e') if arguments.is_some() => {
                let call = arguments.as_ref().map(Ask::editable).unwrap_or_default();
                ask.focus = Focus::Editing(Box::new(Draft::with(&call)));
                Some(Vec::new())
            }
            // With the focus on the question no key falls through to the draft.
            _ => focused.then(Vec::new),
        }
    }

    /// Answers the question that is shown.
    pub(super) fn answer(
        &mut self,
        decision: Choice,
        feedback: Option<String>,
        arguments: Option<Value>,
    ) -> Vec<Effect> {
        let Some(ask) = self.ask.take() else { return Vec::new() };
        self.answered.insert(ask.view.id.clone());
        vec![Effect::Call(Request::Answer {
            approval: Box::new(ask.view),
            decision,
            feedback,
            arguments,
        })]
    }

    /// Moves in the list of completions; `false` if there is none or the key is not its.
    fn list_key(&mut self, key: KeyEvent) -> bool {
        let commands = self.completions();
        let Some(last) = commands.len().checked_sub(1) else {
            return false;
        };
        self.list.chosen = self.list.chosen.min(last);
        match key.code {
            KeyCode::Up => self.list.chosen = self.list.chosen.checked_sub(1).unwrap_or(last),
            KeyCode::Down => {
                self.list.chosen = if self.list.chosen == last {
                    0
                } else {
                    self.list.chosen + 1
                }
            }
            KeyCode::Esc => self.list.closed = true,
            KeyCode::Tab => {
                let Some(command) = commands.get(self.list.chosen) else {
                    return false;
                };
                let space = if command.arguments.is_empty() { "" } else { " " };
                self.draft.set(&format!("{}{space}", command.name));
            }
            _ => return false,
        }
        true
    }

    fn draft_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => return self.submit(),
            KeyCode::Tab if !self.draft.is_empty() => return self.send(Delivery::Queue),
            KeyCode::Esc => self.draft.clear(),
            _ => {
                self.draft.key(key);
                self.list.closed = false;
                self.list.chosen = 0;
            }
        }
        Vec::new()
    }

    fn submit(&mut self) -> Vec<Effect> {
        let text = self.draft.text();
        match text.strip_prefix('/') {
            // A path is not a command.
            Some(rest) if !rest.split_whitespace().next().unwrap_or_default().contains('/') => self.command(&text),
            _ => self.send(Delivery::Auto),
        }
    }
}
