//! Which work the state wants: a function of the state alone. The runner starts what is wanted and does not run, and cancels what
//! runs and is no longer wanted; a restart is nothing else.

use super::state::{Job, Progress, Stage, State, Turn};
use protocol::{CallId, JobId, Seq, Time, TurnId};
use std::collections::BTreeMap;

/// Milliseconds between an interrupt and the kill of what still runs.
pub(crate) const STOP_MS: u64 = 2_000;

/// Milliseconds between the kill and giving a call up.
pub(crate) const ABANDON_MS: u64 = 5_000;

/// A piece of work, by its key. Its end carries the key; an end whose key is not wanted any more is dropped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    Model(ModelKey),
    Tool(CallId),
    /// A command that goes on after its call, also between turns.
    Job(JobId),
}

/// The key of a model call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ModelKey {
    pub(crate) turn: TurnId,
    pub(crate) step: u32,
    pub(crate) attempt: u32,
    /// Where its `step.started` stands.
    pub(crate) seq: Seq,
}

/// How a piece of work should go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urge {
    Run,
    /// End soon, as of this moment; killed `STOP_MS` later.
    Stop {
        since: Time,
    },
    /// End now.
    Kill,
}

/// The work that should be under way, and how.
pub(crate) fn wanted(state: &State) -> BTreeMap<Effect, Urge> {
    let mut wanted = state.turn.as_ref().map(of_turn).unwrap_or_default();
    let urge = |job: &Job| job.stopping.map_or(Urge::Run, |since| Urge::Stop { since });
    wanted.extend(state.jobs.iter().map(|job| (Effect::Job(job.id.clone()), urge(job))));
    wanted
}

fn of_turn(turn: &Turn) -> BTreeMap<Effect, Urge> {
    match turn.stage {
        Stage::Calling { retry_at: Some(_) } => BTreeMap::new(),
        // The turn has begun, and its first step follows in the same transaction.
        Stage::Calling { .. } if turn.step == 0 => BTreeMap::new(),
        Stage::Calling { retry_at: None } => BTreeMap::from([(Effect::Model(turn.model_key()), Urge::Run)]),
        Stage::Acting => running(turn, Urge::Run),
        Stage::Stopping { hard: true, .. } => running(turn, Urge::Kill),
        Stage::Stopping { since, hard: false, .. } => running(turn, Urge::Stop { since }),
    }
}

fn running(turn: &Turn, urge: Urge) -> BTreeMap<Effect, Urge> {
    let calls = turn.calls.iter().filter(|call| call.progress == Progress::Running);
    calls.map(|call| (Effect::Tool(call.id.clone()), urge)).collect()
}

impl Turn {
    /// The key of the model call under way.
    pub(crate) fn model_key(&self) -> ModelKey {
        ModelKey {
            turn: self.id.clone(),
            step: self.step,
            attempt: self.attempt,
            seq: self.step_seq,
        }
    }
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    Retry,
    Turn,
    Stop,
    /// A timed mode ends.
    Mode,
}

/// The earliest moment at which the state wants to be woken.
pub(crate) fn deadline(state: &State) -> Option<(Time, Due)> {
    let mode = state.settings.mode_until.map(|at| (at, Due::Mode));
    turn_deadline(state).into_iter().chain(mode).min()
}

fn turn_deadline(state: &State) -> Option<(Time, Due)> {
    let turn = state.turn.as_ref()?;
    let own = match turn.stage {
        Stage::Calling { retry_at } => retry_at.map(|at| (at, Due::Retry)),
        Stage::Acting => None,
        Stage::Stopping { since, hard, .. } => {
            let patience = if hard { ABANDON_MS } else { STOP_MS + ABANDON_MS };
            return Some((since.plus_ms(patience), Due::Stop));
        }
    };
    own.into_iter().chain(turn.deadline().map(|at| (at, Due::Turn))).min()
}
