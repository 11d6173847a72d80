//! What `agentctl send --json` and `agentctl wait --json` print last: the one line a script has to read.

use crate::event::{Denied, Reason};
use crate::{By, InputId, SessionId, TurnId, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The last line of a command that sends or waits. `kind` is always `result`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResultLine {
    /// `result`.
    pub kind: String,
    /// Null if none was found or made.
    pub session: Option<SessionId>,
    /// Null for `wait` without an input.
    pub input_id: Option<InputId>,
    /// Null if no turn began.
    pub turn: Option<TurnId>,
    /// The turn's outcome; `cancelled` for an input that never had a turn; `started`, `steered` or `queued` with `--no-wait`;
    /// `detached` if a signal ended the command before the turn; `error` if the command failed before that.
    pub status: String,
    /// Text of the step that ended the turn.
    pub text: String,
    /// Calls denied because nobody could answer.
    pub denied: Vec<Denied>,
    pub usage: Usage,
    /// In US dollars; null where no price is known.
    pub cost: Option<f64>,
    /// Model calls made.
    pub steps: u32,
    /// What the command ends with.
    pub exit_code: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The built-in demo model answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo: bool,
    /// Who ended it, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

impl ResultLine {
    /// A line that says nothing but how it ended.
    pub fn new(status: &str, exit_code: u8) -> Self {
        Self {
            kind: "result".to_owned(),
            session: None,
            input_id: None,
            turn: None,
            status: status.to_owned(),
            text: String::new(),
            denied: Vec::new(),
            usage: Usage::default(),
            cost: None,
            steps: 0,
            exit_code,
            reason: None,
            demo: false,
            by: None,
        }
    }
}
