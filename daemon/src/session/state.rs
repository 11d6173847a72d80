//! What a session is between two inputs: the fold of its log. It holds no texts and stays small; what it does hold is all that
//! deciding needs. `fold` is the only way to change it.

use crate::policy::Grant;
use protocol::event::{Denied, GoOnLimit, TodoItem, TurnOutcome};
use protocol::frame::{CallState, Phase};
use protocol::{ApprovalId, By, CallId, InputId, JobId, Mode, Seq, Settings, Stop, Time, TurnId, Unattended, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the stored form: a state of another version is not read, the log is folded anew.
pub(crate) const STATE_VERSION: u32 = 3;

/// Inputs that may wait. Beyond it a `send` answers `queue_full`.
pub(crate) const MAX_WAITING: usize = 32;

/// Allowances a session keeps; the oldest goes first.
pub(crate) const MAX_GRANTS: usize = 64;

/// Files whose last seen content a session remembers; the rest must be read again before they are edited.
pub(crate) const MAX_READ_FILES: usize = 256;

/// Denied calls a turn's end lists.
pub(crate) const MAX_DENIED: usize = 64;

/// A session, folded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// The last event folded in.
    pub(crate) seq: Seq,
    /// When that was.
    pub(crate) at: Time,
    pub(crate) cwd: String,
    pub(crate) root: String,
    /// Directories it works in beside its root, in the order they were added.
    pub(crate) added_roots: Vec<String>,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) archived: bool,
    pub(crate) settings: Settings,
    pub(crate) turn: Option<Turn>,
    /// Inputs that start turns of their own, the next first.
    pub(crate) queue: Vec<Waiting>,
    /// Inputs that join the running turn.
    pub(crate) steers: Vec<Waiting>,
    /// The queue waits for somebody to resume it.
    pub(crate) held: bool,
    pub(crate) grants: Vec<Grant>,
    /// Content hash of each file as the model last saw it.
    pub(crate) read_files: BTreeMap<String, String>,
    pub(crate) usage: Usage,
    /// US dollars of all model calls whose price is known.
    pub(crate) cost: Option<f64>,
    /// What the model means to do; bounded by its tool, 64 items of 200 characters.
    pub(crate) todo: Vec<TodoItem>,
    /// Commands in the background; bounded by their tool, `MAX_JOBS`.
    pub(crate) jobs: Vec<Job>,
    /// The last jobs that ended, with where their `job.ended` stands, the oldest first.
    pub(crate) ended_jobs: Vec<(JobId, Seq)>,
    /// Outcome of the last turn.
    pub(crate) outcome: Option<TurnOutcome>,
    /// The last notice about an automatically chosen model.
    pub(crate) announced: Option<String>,
    /// The last notice about what does not count of the project's own file.
    pub(crate) project_notice: Option<String>,
    /// The last notice about a mistake in the configuration's file.
    pub(crate) config_fault: Option<String>,
    /// The last notice about the project's instructions.
    pub(crate) remarked: Option<String>,
    /// The last notices about what model calls cost.
    pub(crate) session_cost_noticed: Option<String>,
    pub(crate) day_cost_noticed: Option<String>,
    /// The last notice about a context window nobody knows.
    pub(crate) doubted: Option<String>,
    /// A person was told that the context nears its budget.
    pub(crate) context_noticed: bool,
    pub(crate) calibration: Calibration,
}

/// A command in the background.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    /// The call that started it.
    pub(crate) call: CallId,
    pub(crate) started_at: Time,
    /// Since when it is to end.
    #[serde(default)]
    pub(crate) stopping: Option<Time>,
}

/// An input that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) input_id: InputId,
    /// Where its `input.accepted` stands.
    pub(crate) seq: Seq,
    pub(crate) urgent: bool,
    pub(crate) terms: Terms,
}

/// What an input asks of the turn it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) mode: Option<Mode>,
    #[serde(default)]
    pub(crate) mode_until: Option<Time>,
    pub(crate) unattended: Option<Unattended>,
    /// Names of the tools its turn may use; none: all.
    #[serde(default)]
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) interactive: bool,
    pub(crate) by: By,
}

/// The turn that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) started_at: Time,
    pub(crate) by: By,
    pub(crate) mode: Option<Mode>,
    #[serde(default)]
    pub(crate) mode_until: Option<Time>,
    pub(crate) unattended: Unattended,
    /// Names of the tools it may use; none: all.
    #[serde(default)]
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) interactive: bool,
    pub(crate) clock: Clock,
    pub(crate) inputs: Vec<InputId>,
    pub(crate) step: u32,
    pub(crate) attempt: u32,
    /// Where the `step.started` of this attempt stands.
    pub(crate) step_seq: Seq,
    pub(crate) stage: Stage,
    pub(crate) calls: Vec<Call>,
    /// The question whether the turn may go on beyond its steps.
    pub(crate) go_on: Option<Pending>,
    /// Steps it may take before it is asked (again).
    pub(crate) step_limit: u32,
    /// What it reached when it was asked last.
    #[serde(default)]
    pub(crate) asks: Option<GoOnLimit>,
    /// A person said that it may go on whatever it costs.
    #[serde(default)]
    pub(crate) cost_allowed: bool,
    /// Failures of this step's model call.
    pub(crate) failures: u32,
    /// Moment of this step's first failure.
    pub(crate) failing_since: Option<Time>,
    /// Resumes since the last completed step.
    pub(crate) lives: u32,
    /// How the last reply ended.
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<f64>,
    pub(crate) denied: Vec<Denied>,
    pub(crate) demo: bool,
}

/// The turn's phase with what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// A model call runs, or is tried again at `retry_at`.
    Calling { retry_at: Option<Time> },
    /// Calls run or wait.
    Acting,
    /// Running calls are being ended.
    Stopping {
        outcome: TurnOutcome,
        since: Time,
        hard: bool,
    },
}

/// A turn's time: it stands still while everything the turn waits for is a person, and while the daemon is down.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Clock {
    pub(crate) limit_ms: Option<u64>,
    pub(crate) spent_ms: u64,
    /// Up to here `spent_ms` is counted.
    pub(crate) counted_to: Time,
}

/// A call of the running step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) tool: String,
    pub(crate) writes: bool,
    pub(crate) progress: Progress,
    pub(crate) approval: Option<Pending>,
    /// It is asked in every mode: a change of mode does not answer it.
    pub(crate) firm: bool,
    /// Where the answer stands that gave it other arguments.
    #[serde(default)]
    pub(crate) edited: Option<Seq>,
}

/// A pending approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) id: ApprovalId,
    /// Where its `approval.requested` stands.
    pub(crate) seq: Seq,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Progress {
    Asked,
    Ready,
    /// Refused, its result not recorded yet. Never outlives the transaction it came in.
    Refused,
    Running,
    Done,
}

/// How far off our own count of tokens was, by what providers reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Calibration {
    /// Tokens as estimated and as reported, of the last call that had both; both 0 without one.
    pub(crate) estimated: u64,
    pub(crate) reported: u64,
}

impl Calibration {
    /// Wider than any tokenizer differs from the estimate; a report beyond it counts something else.
    const FACTOR: u64 = 8;

    /// Learns from a call.
    pub(crate) fn learn(&mut self, estimated: u64, reported: u64) {
        let bound = estimated.saturating_mul(Self::FACTOR);
        if estimated > 0 && reported.saturating_mul(Self::FACTOR) >= estimated && reported <= bound {
            *self = Self { estimated, reported };
        }
    }

    /// An estimate, corrected.
    pub(crate) fn correct(self, estimate: u64) -> u64 {
        estimate
            .saturating_mul(self.reported)
            .checked_div(self.estimated)
            .unwrap_or(estimate)
    }
}

impl State {
    /// The directories it works in, the project's root first.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.root).chain(&self.added_roots).map(String::as_str)
    }

    /// The phase, as clients see it.
    pub(crate) fn phase(&self) -> Phase {
        match self.turn.as_ref().map(|turn| turn.stage) {
            None => Phase::Idle,
            Some(Stage::Calling { .. }) => Phase::Calling,
            Some(Stage::Acting) => Phase::Acting,
            Some(Stage::Stopping { .. }) => Phase::Stopping,
        }
    }

    /// The mode in force at a moment: a timed one ends by the clock, whether or not its end is recorded yet.
    pub(crate) fn mode_at(&self, at: Time) -> Mode {
        let lasts = |until: Option<Time>| until.is_none_or(|until| at < until);
        let settings = &self.settings;
        let own = if lasts(settings.mode_until) {
            settings.mode
        } else {
            settings.mode_after.unwrap_or_default()
        };
        self.turn
            .as_ref()
            .filter(|turn| lasts(turn.mode_until))
            .and_then(|turn| turn.mode)
            .unwrap_or(own)
    }

    /// The mode in force at the last event.
    pub(crate) fn mode(&self) -> Mode {
        self.mode_at(self.at)
    }

    /// The waiting input with this id.
    pub(crate) fn waiting(&self, input_id: &InputId) -> Option<&Waiting> {
        self.steers
            .iter()
            .chain(&self.queue)
            .find(|waiting| waiting.input_id == *input_id)
    }

    /// Every approval that waits, with its call.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (&Pending, Option<&CallId>)> {
        self.turn.iter().flat_map(|turn| {
            let calls = turn.calls.iter().filter(|call| call.progress == Progress::Asked);
            let asked = calls.filter_map(|call| call.approval.as_ref().map(|pending| (pending, Some(&call.id))));
            asked.chain(turn.go_on.iter().map(|pending| (pending, None)))
        })
    }
}

impl Turn {
    /// Whether all it waits for is a person.
    pub(crate) fn waits_for_people(&self) -> bool {
        let asked = self.go_on.is_some() || self.calls.iter().any(|call| call.progress == Progress::Asked);
        self.stage == Stage::Acting && asked && !self.calls.iter().any(|call| call.progress == Progress::Running)
    }

    /// When its time is over; `None` without a limit or while its clock stands still.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let limit = self.clock.limit_ms?;
        let left = limit.saturating_sub(self.clock.spent_ms);
        (!self.waits_for_people()).then(|| self.clock.counted_to.plus_ms(left))
    }

    /// The call with this id.
    pub(crate) fn call(&self, id: &CallId) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == *id)
    }

    pub(crate) fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == *id)
    }
}

impl From<Progress> for CallState {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Asked => Self::Asked,
            Progress::Ready | Progress::Refused => Self::Ready,
            Progress::Running => Self::Running,
            Progress::Done => Self::Done,
        }
    }
}
