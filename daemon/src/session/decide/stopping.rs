//! The turn ends as soon as its running calls have, or when patience with them is over.

use super::Plan;
use super::acting::ended;
use crate::session::state::Progress;
use protocol::CallId;
use protocol::event::{ToolOutcome, TurnOutcome};

impl Plan<'_> {
    pub(super) fn advance_stopping(&mut self, outcome: TurnOutcome) {
        let all_done = self
            .state
            .turn
            .as_ref()
            .is_some_and(|turn| turn.calls.iter().all(|call| call.progress == Progress::Done));
        if all_done {
            self.end(outcome, None);
        }
    }

    fn running(&self) -> Vec<CallId> {
        let calls = self.state.turn.iter().flat_map(|turn| &turn.calls);
        calls
            .filter(|call| call.progress == Progress::Running)
            .map(|call| call.id.clone())
            .collect()
    }

    /// What runs did not end although it was killed.
    pub(super) fn give_up_running(&mut self) {
        for call in self.running() {
            let text = "The call did not end although it was killed; whether it took effect is unknown.";
            self.emit(ended(call, ToolOutcome::Abandoned, text));
        }
        self.advance();
    }

    /// What ran in an earlier life of the daemon is never run again.
    pub(super) fn lose_running(&mut self) {
        for call in self.running() {
            let text = "Interrupted, outcome unknown: the daemon ended while this call ran. Look before you repeat it.";
            self.emit(ended(call, ToolOutcome::Lost, text));
        }
    }
}
