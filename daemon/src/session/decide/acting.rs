//! Calls run or wait: answers, ends, and what may start next.

use super::Plan;
use crate::session::effect::job::outcome;
use crate::session::input::ToolEnd;
use crate::session::state::{Call, Progress, Turn};
use protocol::event::{
    ApprovalResolved, GoOnLimit, Reason, Resolution, TodoChanged, ToolCompleted, ToolOutcome, TurnInterruptRequested,
    TurnOutcome,
};
use protocol::{ApprovalId, By, CallId, Mode, Stop, UnattendedPolicy};

impl Plan<'_> {
    pub(super) fn resolve(
        &mut self,
        approval: ApprovalId,
        call: Option<CallId>,
        decision: Resolution,
        feedback: Option<String>,
        grant: Option<serde_json::Value>,
        by: By,
    ) {
        if let (Some(call), false) = (&call, decision.allows()) {
            let cancelled = decision == Resolution::Cancelled;
            let outcome = if cancelled {
                ToolOutcome::NotRun
            } else {
                ToolOutcome::Denied
            };
            let text = match (decision, &feedback) {
                (_, Some(feedback)) => format!("Not run. The user denied it and said: {feedback}"),
                (Resolution::Deny, None) if matches!(by, By::Client { .. }) => {
                    "Not run. The user denied it.".to_owned()
                }
                (Resolution::Deny, None) => format!("Not run. It was denied by {by}."),
                (Resolution::Cancelled, None) => "Not run: the turn was stopped.".to_owned(),
                _ => "Not run: it needs an approval and nobody could answer. Go on without it.".to_owned(),
            };
            self.refusals.insert(call.clone(), (outcome, text));
        }
        self.emit(ApprovalResolved {
            approval,
            call,
            decision,
            feedback,
            grant,
            arguments: None,
            digest: None,
            action: None,
            by,
        });
    }

    /// Settles every approval that waits. Those that are asked in every mode stay with `Which::Yielding`.
    fn resolve_pending(&mut self, which: Which, decision: Resolution, by: &By) {
        let Some(turn) = self.state.turn.clone() else { return };
        let firm = |call: Option<&CallId>| call.and_then(|id| turn.call(id)).is_none_or(|call| call.firm);
        let pending: Vec<_> = self
            .state
            .pending()
            .filter(|(_, call)| which == Which::All || !firm(*call))
            .map(|(pending, call)| (pending.id.clone(), call.cloned()))
            .collect();
        for (approval, call) in pending {
            self.resolve(approval, call, decision, None, None, by.clone());
        }
    }

    /// What a new mode says of the approvals that wait.
    pub(super) fn answer_by_mode(&mut self, mode: Mode) {
        let rule = By::rule(match mode {
            Mode::All => "mode all",
            Mode::None => "mode none",
            Mode::Ask | Mode::Edits => return,
        });
        let decision = if mode == Mode::All {
            Resolution::Once
        } else {
            Resolution::Deny
        };
        self.resolve_pending(Which::Yielding, decision, &rule);
    }

    pub(super) fn unattended(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let (policy, go_on) = (turn.unattended.policy, turn.go_on.clone());
        if self.state.pending().next().is_none() {
            return;
        }
        let by = By::daemon("nobody could answer");
        match policy {
            UnattendedPolicy::Wait => {}
            UnattendedPolicy::Deny | UnattendedPolicy::Fail if go_on.is_some() => {
                self.resolve_pending(Which::All, Resolution::Expired, &by);
                self.end_at_limit();
            }
            UnattendedPolicy::Deny => {
                self.resolve_pending(Which::All, Resolution::Expired, &by);
                self.advance();
            }
            UnattendedPolicy::Fail => self.stop_calls(TurnOutcome::Unanswered, by),
        }
    }

    pub(super) fn tool_ended(&mut self, end: ToolEnd) {
        let running = |turn: &Turn| {
            turn.call(&end.call)
                .is_some_and(|call| call.progress == Progress::Running)
        };
        if !self.state.turn.as_ref().is_some_and(running) {
            return;
        }
        self.emit(ToolCompleted {
            call: end.call,
            outcome: outcome(end.outcome),
            output: end.output,
            images: end.images,
            blob: end.blob,
            produced: end.produced,
            diff: end.diff,
            exit_code: end.exit_code,
            duration_ms: end.duration_ms,
            files: end.files,
            job: end.job,
        });
        if let Some(items) = end.todo {
            self.emit(TodoChanged { items });
        }
        self.advance();
    }

    /// Closes refused calls, starts those that may start, and goes on when all are done.
    pub(super) fn advance_acting(&mut self) {
        self.close_refused();
        // One that ends instead of starting lets others start; each round starts, asks about or ends all of them.
        loop {
            let Some(turn) = &self.state.turn else { return };
            let start: Vec<CallId> = may_start(&turn.calls);
            if start.is_empty() {
                break;
            }
            for call in start {
                self.start_call(call);
            }
        }
        let Some(turn) = &self.state.turn else { return };
        if turn.go_on.is_some() || turn.calls.iter().any(|call| call.progress != Progress::Done) {
            return;
        }
        let begun = turn.step > 0;
        let done = begun && turn.calls.is_empty() && turn.stop != Some(Stop::PauseTurn) && self.state.steers.is_empty();
        if done {
            self.end(TurnOutcome::Completed, None);
        } else if turn.step >= turn.step_limit {
            let reason = format!("the turn has taken {} steps; go on?", turn.step);
            self.ask_to_go_on(GoOnLimit::Steps, reason);
        } else if !self.asks_about_cost() {
            self.next_step();
        }
    }

    fn next_step(&mut self) {
        let Some((turn, step)) = self.state.turn.as_ref().map(|turn| (turn.id.clone(), turn.step)) else {
            return;
        };
        let steers: Vec<_> = self
            .state
            .steers
            .iter()
            .map(|waiting| waiting.input_id.clone())
            .collect();
        for input_id in steers {
            self.deliver(input_id, &turn);
        }
        self.start_step(step + 1, 1);
    }

    /// Nobody let the turn go on beyond the limit it was asked about.
    pub(super) fn end_at_limit(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let reason = match turn.asks {
            Some(GoOnLimit::Cost) => Reason {
                kind: "cost_limit".to_owned(),
                message: "a limit of cost is reached and the turn was not allowed to go on".to_owned(),
                hint: Some("send another input to be asked again, or raise the limit in [limits]".to_owned()),
            },
            Some(GoOnLimit::Steps) | None => Reason {
                kind: "step_limit".to_owned(),
                message: format!("the turn took {} steps and was not allowed to go on", turn.step),
                hint: Some("send another input to go on, or raise max_steps in [session]".to_owned()),
            },
        };
        self.end(TurnOutcome::Failed, Some(reason));
    }

    /// Records what became of each call that may not run.
    fn close_refused(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let refused = turn.calls.iter().filter(|call| call.progress == Progress::Refused);
        for call in refused.map(|call| call.id.clone()).collect::<Vec<_>>() {
            let (outcome, output) = self
                .refusals
                .remove(&call)
                .unwrap_or((ToolOutcome::Denied, "Not run: it was denied.".to_owned()));
            self.emit(ended(call, outcome, &output));
        }
    }

    /// Begins to end the turn while calls run or wait.
    pub(super) fn stop_calls(&mut self, outcome: TurnOutcome, by: By) {
        self.request_interrupt(outcome, false, by.clone());
        self.resolve_pending(Which::All, Resolution::Cancelled, &by);
        self.close_refused();
        let Some(turn) = &self.state.turn else { return };
        let waiting = turn
            .calls
            .iter()
            .filter(|call| matches!(call.progress, Progress::Asked | Progress::Ready));
        for call in waiting.map(|call| call.id.clone()).collect::<Vec<_>>() {
            self.emit(ended(call, ToolOutcome::NotRun, "Not run: the turn was stopped."));
        }
        self.advance();
    }

    pub(super) fn request_interrupt(&mut self, outcome: TurnOutcome, hard: bool, by: By) {
        if let Some(turn) = self.state.turn.as_ref().map(|turn| turn.id.clone()) {
            self.emit(TurnInterruptRequested {
                turn,
                outcome,
                hard,
                by,
            });
        }
    }
}

/// Which pending approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those that a mode may answer.
    Yielding,
}

/// The end of a call that did not run, or whose end nobody saw.
pub(super) fn ended(call: CallId, outcome: ToolOutcome, output: &str) -> ToolCompleted {
    ToolCompleted {
        call,
        outcome,
        output: output.to_owned(),
        images: Vec::new(),
        blob: None,
        produced: None,
        diff: None,
        exit_code: None,
        duration_ms: 0,
        files: std::collections::BTreeMap::new(),
        job: None,
    }
}

/// A call may start when every earlier writing call is done and, if it writes itself, every earlier call is.
fn may_start(calls: &[Call]) -> Vec<CallId> {
    let mut start = Vec::new();
    let (mut all_done, mut writers_done) = (true, true);
    for call in calls {
        if call.progress == Progress::Ready && writers_done && (all_done || !call.writes) {
            start.push(call.id.clone());
        }
        if call.progress != Progress::Done {
            all_done = false;
            writers_done &= !call.writes;
        }
    }
    start
}
