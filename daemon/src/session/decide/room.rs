//! After a model call: whether the reply is whole, how much of the model's context is used, and what a person is told about it, once.

use super::Plan;
use crate::session::input::Room;
use protocol::event::{NoticeAdded, NoticeLevel};
use protocol::{Stop, Usage};

/// Percent of the budget at which a person is told.
const NOTICE_PERCENT: u64 = 80;

/// Code of the notice that the context nears its budget.
pub(in crate::session) const CONTEXT_BUDGET: &str = "context_budget";

/// Code of the notice that a reply is not whole.
const REPLY_CUT: &str = "reply_cut";

/// Code of the notice that a model's window is not known.
pub(in crate::session) const CONTEXT_WINDOW: &str = "context_window";

/// Why a reply is not whole and what helps; `None` if it is.
pub(super) fn cut_off(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::MaxTokens => {
            Some("the reply was cut at its limit of tokens: raise max_output_tokens of this model or lower its effort")
        }
        Stop::ContextWindow => Some("the reply was cut where the model's context is full: start a new session"),
        Stop::ContentFilter => Some("the reply was cut by the provider's content filter"),
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence | Stop::Refusal | Stop::PauseTurn | Stop::Other => None,
    }
}

impl Plan<'_> {
    /// Says that what the model said is not all of it.
    pub(super) fn note_cut(&mut self, stop: Stop) {
        if let Some(text) = cut_off(stop) {
            self.notice(REPLY_CUT, NoticeLevel::Warning, text.to_owned());
        }
    }

    /// Says what is to be said about the context as it is after a reply.
    pub(super) fn note_room(&mut self, room: &Room, usage: Option<Usage>) {
        if let Some(doubt) = &room.doubt
            && self.state.doubted.as_ref() != Some(doubt)
        {
            self.notice(CONTEXT_WINDOW, NoticeLevel::Info, doubt.clone());
        }
        let used = self.used(room, usage);
        let percent = used.saturating_mul(100) / room.budget.max(1);
        if percent >= NOTICE_PERCENT && room.budget > 0 && !self.state.context_noticed {
            let text = format!(
                "the context has about {used} of its {} tokens ({percent}%): start a new session soon, or set \
                 context_budget_tokens for this model",
                room.budget
            );
            self.notice(CONTEXT_BUDGET, NoticeLevel::Warning, text);
        }
    }

    /// Tokens of the context with the reply in it: what the provider counted, else our own count as far off as it was before.
    fn used(&self, room: &Room, usage: Option<Usage>) -> u64 {
        match usage {
            Some(usage) if usage.input > 0 => usage.input + usage.output,
            _ => self.state.calibration.correct(room.request + room.reply),
        }
    }

    fn notice(&mut self, code: &str, level: NoticeLevel, text: String) {
        self.emit(NoticeAdded {
            code: code.to_owned(),
            level,
            text,
        });
    }
}
