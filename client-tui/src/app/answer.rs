//! The question that is shown, and when a key answers it: only while nothing is typed and no key came for a while, so that a
//! person who types does not answer what just appeared; or after the focus was moved to it on purpose.

use crate::draft::Draft;
use protocol::frame::ApprovalView;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Time without a key before a key can answer a question.
pub(crate) const QUIET: Duration = Duration::from_millis(500);

/// A question and where its answer stands.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) view: ApprovalView,
    pub(crate) focus: Focus,
}

/// Where keys go.
#[derive(Debug)]
pub(crate) enum Focus {
    /// To the draft; to the question while it is quiet.
    Draft,
    /// To the question.
    Question,
    /// To the words that tell the model what to do instead.
    Telling(Box<Draft>),
    /// To the rule that `always` would write: Enter writes it.
    Always,
    /// To the call, which is being changed.
    Editing(Box<Draft>),
}

impl Ask {
    /// A question that is about to be drawn: a key that came before cannot answer it.
    pub(crate) fn new(view: ApprovalView) -> Self {
        Self {
            view,
            focus: Focus::Draft,
        }
    }

    /// Whether what is typed goes into a draft of the question's own.
    pub(crate) fn is_typing(&self) -> bool {
        matches!(self.focus, Focus::Telling(_) | Focus::Editing(_))
    }

    /// The call as text to change: a command as it is, anything else as JSON.
    pub(crate) fn editable(arguments: &Value) -> String {
        match arguments.get("command").and_then(Value::as_str) {
            Some(command) => command.to_owned(),
            None => format!("{arguments:#}"),
        }
    }

    /// The changed text as arguments again.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub(crate) fn edited(arguments: &Value, text: &str) -> Result<Value, String> {
        let mut changed = arguments.clone();
        match changed.get_mut("command") {
            Some(command @ Value::String(_)) => *command = Value::String(text.to_owned()),
            _ => changed = serde_json::from_str(text).map_err(|error| format!("that is no JSON: {error}"))?,
        }
        if changed == *arguments {
            return Err("nothing was changed; Esc, then y allows it as it is".to_owned());
        }
        Ok(changed)
    }

    /// Whether a key pressed now answers, the one before having come at `last_key`.
    pub(crate) fn listens(&self, draft: &Draft, last_key: Option<Instant>, now: Instant) -> bool {
        match self.focus {
            Focus::Question => true,
            Focus::Telling(_) | Focus::Always | Focus::Editing(_) => false,
            Focus::Draft => {
                let quiet = last_key.is_none_or(|key| now.saturating_duration_since(key) >= QUIET);
                draft.is_empty() && quiet
            }
        }
    }
}
