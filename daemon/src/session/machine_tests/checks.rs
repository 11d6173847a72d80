//! What every log must hold, read from the log alone: nothing here knows how the machine decides.

use crate::session::state::State;
use crate::session::wanted::{Effect, ModelKey, wanted};
use protocol::event::{Decision, Event, InputOutcome, Resolution, ToolOutcome};
use protocol::{By, CallId, InputId, JobId, Seq, Time, TurnId};
use std::collections::{BTreeMap, BTreeSet};

/// What the log must hold at every moment.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) turn: Option<TurnId>,
    pub(super) turns: BTreeMap<TurnId, u32>,
    pub(super) inputs: BTreeMap<InputId, u32>,
    pub(super) calls: BTreeMap<CallId, Seen>,
    pub(super) approvals: BTreeMap<String, (bool, bool)>,
    /// How often each job that was begun has ended.
    pub(super) jobs: BTreeMap<JobId, u32>,
    pub(super) urgent: Vec<InputId>,
    pub(super) first_delivery: bool,
    /// The input that the last turn's end said comes next.
    pub(super) announced: Option<InputId>,
    /// A changed call whose next question must follow.
    pub(super) asks_anew: Option<CallId>,
}

#[derive(Default)]
pub(super) struct Seen {
    asks: bool,
    /// Nothing but a mode allowed it, so it may be asked about before it begins.
    by_mode: bool,
    allowed: bool,
    started: u32,
    completed: u32,
}

impl Checked {
    pub(super) fn all(log: &[Event]) -> Self {
        let mut checked = Self::default();
        for (event, seq) in log.iter().zip(1..) {
            checked.take(event, Seq(seq));
        }
        assert_eq!(checked.asks_anew, None, "a changed call was never asked about anew");
        checked
    }

    pub(super) fn calls_closed(&self) -> bool {
        self.calls.values().all(|call| call.completed == 1)
    }

    pub(super) fn take(&mut self, event: &Event, seq: Seq) {
        match event {
            Event::TurnStarted(started) => {
                assert_eq!(self.turn, None, "two turns at once");
                assert_eq!(started.turn, TurnId::at(seq), "a turn is numbered by its event");
                self.turn = Some(started.turn.clone());
                self.turns.insert(started.turn.clone(), 0);
                self.first_delivery = true;
            }
            Event::TurnCompleted(completed) => {
                assert_eq!(
                    self.turn.as_ref(),
                    Some(&completed.turn),
                    "the end of a turn that does not run"
                );
                *self.turns.get_mut(&completed.turn).unwrap() += 1;
                assert!(self.calls_closed(), "a turn ended with an open call");
                let waits: Vec<_> = self.approvals.values().filter(|(_, resolved)| !resolved).collect();
                assert!(waits.is_empty(), "a turn ended with an approval that waits");
                self.turn = None;
                self.announced.clone_from(&completed.next);
            }
            Event::InputAccepted(accepted) => {
                assert_eq!(
                    self.inputs.insert(accepted.input_id.clone(), 0),
                    None,
                    "an input accepted twice"
                );
                if accepted.urgent {
                    self.urgent.insert(0, accepted.input_id.clone());
                }
            }
            Event::InputDelivered(delivered) => {
                if std::mem::take(&mut self.first_delivery) {
                    if let Some(urgent) = self.urgent.first() {
                        assert_eq!(*urgent, delivered.input_id, "an urgent input did not come next");
                    }
                    if let Some(next) = self.announced.take() {
                        assert_eq!(next, delivered.input_id, "another input came than the turn's end said");
                    }
                }
                self.urgent.retain(|id| *id != delivered.input_id);
                assert_eq!(Some(&delivered.turn), self.turn.as_ref(), "delivered to another turn");
                assert!(self.calls_closed(), "an input delivered between a call and its result");
            }
            Event::InputSettled(settled) => {
                self.urgent.retain(|id| *id != settled.input_id);
                let count = self.inputs.get_mut(&settled.input_id).unwrap();
                *count += 1;
                assert_eq!(*count, 1, "an input settled twice");
                assert_eq!(settled.turn.is_none(), settled.outcome == InputOutcome::Cancelled);
            }
            Event::StepStarted(started) => {
                assert_eq!(Some(&started.turn), self.turn.as_ref(), "a step outside its turn");
                assert!(self.calls_closed(), "a model call with an open tool call");
            }
            Event::ToolRequested(requested) => {
                assert_eq!(requested.call, CallId::at(seq));
                let asks = requested.verdict.decision == Decision::Ask;
                let allowed = requested.verdict.decision == Decision::Allow && requested.argument_error.is_none();
                self.calls.insert(
                    requested.call.clone(),
                    Seen {
                        asks,
                        by_mode: requested.verdict.mode.is_some(),
                        allowed,
                        ..Seen::default()
                    },
                );
            }
            Event::ApprovalRequested(request) => {
                if let Some(anew) = self.asks_anew.take() {
                    assert_eq!(request.call, Some(anew), "a changed call is asked about anew at once");
                }
                if let Some(call) = &request.call {
                    let seen = self.calls.get_mut(call).unwrap();
                    assert!(
                        seen.asks || seen.by_mode,
                        "asked for a call whose verdict was not to ask"
                    );
                    // From here on the answer counts, not the verdict.
                    seen.allowed = false;
                }
                let twice = self
                    .approvals
                    .insert(request.approval.0.clone(), (request.call.is_some(), false));
                assert_eq!(twice, None, "asked twice");
            }
            Event::ApprovalResolved(resolved) => {
                let (_, settled) = self.approvals.get_mut(&resolved.approval.0).unwrap();
                assert!(!*settled, "settled twice");
                *settled = true;
                if let (Some(call), true) = (&resolved.call, resolved.decision.allows()) {
                    let seen = self.calls.get_mut(call).unwrap();
                    seen.allowed = true;
                    seen.by_mode |= matches!(resolved.by, By::Rule { .. });
                }
                assert!(resolved.call.is_some() || resolved.grant.is_none());
                if resolved.decision == Resolution::Edited {
                    assert!(resolved.call.is_some() && resolved.arguments.is_some() && resolved.grant.is_none());
                    self.asks_anew.clone_from(&resolved.call);
                }
            }
            Event::ToolStarted(started) => {
                let call = self.calls.get_mut(&started.call).unwrap();
                assert!(call.allowed, "a tool ran without an allowing verdict");
                call.started += 1;
                assert_eq!(
                    (call.started, call.completed),
                    (1, 0),
                    "a tool started twice, or after its result"
                );
            }
            Event::ToolCompleted(completed) => {
                let call = self.calls.get_mut(&completed.call).unwrap();
                call.completed += 1;
                assert_eq!(call.completed, 1, "a call with two results");
                let unstarted = [ToolOutcome::Denied, ToolOutcome::NotRun, ToolOutcome::Error];
                assert!(
                    call.started == 1 || unstarted.contains(&completed.outcome),
                    "a result of a call that never began"
                );
                if let Some(job) = &completed.job {
                    assert_eq!(self.jobs.insert(job.clone(), 0), None, "a job begun twice");
                }
            }
            Event::JobEnded(ended) => {
                let ends = self.jobs.get_mut(&ended.job).unwrap();
                *ends += 1;
                assert_eq!(*ends, 1, "a job ended twice");
            }
            _ => {}
        }
    }
}

/// At every prefix of a log the fold wants exactly what its events say is under way.
pub(super) fn every_prefix_wants_what_ran(log: &[Event]) {
    let mut state = State::default();
    let mut running = BTreeSet::new();
    for (event, seq) in log.iter().zip(1..) {
        state.apply(Seq(seq), Time(0), event);
        match event {
            Event::StepStarted(started) => {
                running.retain(|effect| matches!(effect, Effect::Job(_)));
                running.insert(Effect::Model(ModelKey {
                    turn: started.turn.clone(),
                    step: started.step,
                    attempt: started.attempt,
                    seq: Seq(seq),
                }));
            }
            Event::StepCompleted(_) | Event::TurnCompleted(_) => {
                running.retain(|effect| !matches!(effect, Effect::Model(_)))
            }
            Event::StepFailed(_) => running.retain(|effect| matches!(effect, Effect::Job(_))),
            Event::ToolStarted(started) => {
                running.insert(Effect::Tool(started.call.clone()));
            }
            Event::ToolCompleted(completed) => {
                running.remove(&Effect::Tool(completed.call.clone()));
                running.extend(completed.job.clone().map(Effect::Job));
            }
            Event::JobEnded(ended) => {
                running.remove(&Effect::Job(ended.job.clone()));
            }
            _ => {}
        }
        // An input is settled while the turn's end is being written; a reply that was cut still counts as running until then.
        if !matches!(event, Event::InputSettled(_)) {
            let wants: BTreeSet<Effect> = wanted(&state).into_keys().collect();
            assert_eq!(wants, running, "at event {seq}, {}", event.kind());
        }
    }
}
