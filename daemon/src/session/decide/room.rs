//! After a model call: how much of the model's context is used, and what a person is told about it, once.

use super::Plan;
use crate::session::input::Room;
use protocol::Usage;
use protocol::event::{NoticeAdded, NoticeLevel};

/// Percent of the budget at which a person is told.
const NOTICE_PERCENT: u64 = 80;

/// Code of the notice that the context nears its budget.
pub(in crate::session) const CONTEXT_BUDGET: &str = "context_budget";

/// Code of the notice that a model's window is not known.
pub(in crate::session) const CONTEXT_WINDOW: &str = "context_window";

impl Plan<'_> {
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
