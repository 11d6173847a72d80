//! What a session is now: the last snapshot and the events after it, folded. Pure; the moments are handed in.

use protocol::event::{
    ApprovalRequested, ApprovalResolved, Decision, Disposition, InputAccepted, PromptSource, SessionChanged, TodoItem,
    TodoState, ToolCompleted, ToolRequested,
};
use protocol::frame::{
    ApprovalView, CallState, CallView, ClientView, JobView, Phase, QueuedInput, SandboxView, Snapshot,
};
use protocol::{CallId, Envelope, Event, InputId, Mode, Seq, SessionId, Settings, Time, TurnId, Usage, plain_text};
use std::time::{Duration, Instant};

/// Characters of a waiting input that are kept, as a snapshot has them.
const QUEUED_CHARACTERS: usize = 200;

/// When something happened: on the wall, as the log has it, and on the clock that never goes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall: Time,
    pub(crate) clock: Instant,
}

impl Now {
    /// This moment.
    pub(crate) fn read() -> Self {
        Self {
            wall: Time::now(),
            clock: Instant::now(),
        }
    }

    /// The moment on the clock of something that is `at` on the wall and lies in the past.
    fn clock_of(self, at: Time) -> Instant {
        let ago = Duration::from_millis(self.wall.ms_since(at));
        self.clock.checked_sub(ago).unwrap_or(self.clock)
    }
}

/// The turn that runs.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) step: u32,
    pub(crate) since: Instant,
    /// The model call failed; it is made again then.
    pub(crate) retry_at: Option<Instant>,
    /// Its own mode, and when that ends before the turn does.
    pub(crate) mode: Option<(Mode, Option<Time>)>,
}

/// A call that is not done.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) view: CallView,
    /// When it began to run.
    pub(crate) since: Option<Instant>,
}

/// The session as far as this client shows it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) session: SessionId,
    pub(crate) name: Option<String>,
    pub(crate) cwd: String,
    /// Further directories it works in.
    pub(crate) added_roots: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) phase: Phase,
    pub(crate) turn: Option<Turn>,
    pub(crate) calls: Vec<Call>,
    pub(crate) approvals: Vec<ApprovalView>,
    pub(crate) queue: Vec<QueuedInput>,
    pub(crate) held: bool,
    pub(crate) usage: Usage,
    /// US dollars of the calls whose price is known.
    pub(crate) cost: Option<f64>,
    /// What the model means to do.
    pub(crate) todo: Vec<TodoItem>,
    /// Commands in the background.
    pub(crate) jobs: Vec<JobView>,
    pub(crate) sandbox: Option<SandboxView>,
    /// What the system prompt of the last model call was made of.
    pub(crate) sources: Vec<PromptSource>,
    pub(crate) clients: Vec<ClientView>,
    /// The model that answered last.
    pub(crate) answered_by: Option<String>,
    /// The last event that was seen.
    pub(crate) head: Seq,
}

impl State {
    /// A session of which only the list entry is known.
    pub(crate) fn new(session: SessionId, cwd: String, settings: Settings) -> Self {
        Self {
            session,
            name: None,
            cwd,
            added_roots: Vec::new(),
            settings,
            phase: Phase::Idle,
            turn: None,
            calls: Vec::new(),
            approvals: Vec::new(),
            queue: Vec::new(),
            held: false,
            usage: Usage::default(),
            cost: None,
            todo: Vec::new(),
            jobs: Vec::new(),
            sandbox: None,
            sources: Vec::new(),
            clients: Vec::new(),
            answered_by: None,
            head: Seq(0),
        }
    }

    /// The session is exactly this.
    pub(crate) fn snapshot(&mut self, snapshot: Snapshot, now: Now) {
        self.name = snapshot.name;
        self.cwd = snapshot.cwd;
        self.added_roots = snapshot.added_roots;
        self.settings = snapshot.settings;
        self.phase = snapshot.phase;
        self.turn = snapshot.turn.map(|turn| Turn {
            id: turn.turn,
            step: turn.step,
            since: now.clock_of(turn.started_at),
            retry_at: turn
                .retry_at
                .map(|at| now.clock + Duration::from_millis(at.ms_since(now.wall))),
            mode: turn.mode.map(|mode| (mode, turn.mode_until)),
        });
        let running = |view: CallView| Call {
            since: (view.state == CallState::Running).then_some(now.clock),
            view,
        };
        self.calls = snapshot.calls.into_iter().map(running).collect();
        self.approvals = snapshot.approvals;
        self.queue = snapshot.queue;
        self.held = snapshot.held;
        self.usage = snapshot.usage;
        self.cost = snapshot.cost;
        self.todo = snapshot.todo;
        self.jobs = snapshot.jobs;
        self.sandbox = snapshot.sandbox;
        self.clients = snapshot.presence;
        self.head = snapshot.head;
    }

    /// An event after the snapshot.
    pub(crate) fn event(&mut self, envelope: &Envelope, now: Now) {
        let Some(event) = envelope.event() else { return };
        match event {
            Event::SessionChanged(change) => self.changed(change),
            Event::InputAccepted(input) => self.accepted(input, envelope.at),
            Event::InputDelivered(delivered) => self.unqueue(&delivered.input_id),
            Event::InputSettled(settled) => self.unqueue(&settled.input_id),
            Event::QueueResumed(_) => self.held = false,
            Event::TurnStarted(turn) => {
                self.turn = Some(Turn {
                    id: turn.turn,
                    step: 1,
                    since: now.clock_of(envelope.at),
                    retry_at: None,
                    mode: turn.mode.map(|mode| (mode, turn.mode_until)),
                });
                self.phase = Phase::Calling;
                self.held = false;
            }
            Event::TurnInterruptRequested(_) => self.phase = Phase::Stopping,
            Event::TurnCompleted(turn) => {
                let interrupted = turn.outcome == protocol::event::TurnOutcome::Interrupted;
                // What should have joined this turn goes before what was meant for the next.
                self.queue.sort_by_key(|waiting| !waiting.steer);
                self.queue.iter_mut().for_each(|waiting| waiting.steer = false);
                self.held = interrupted && turn.next.is_none() && !self.queue.is_empty();
                self.idle();
            }
            Event::StepStarted(step) => {
                self.phase = Phase::Calling;
                self.calls.clear();
                if let Some(turn) = &mut self.turn {
                    turn.step = step.step;
                    turn.retry_at = None;
                }
            }
            Event::StepFailed(step) => {
                let retry = step
                    .retry_at
                    .map(|at| now.clock + Duration::from_millis(at.ms_since(now.wall)));
                if let Some(turn) = &mut self.turn {
                    turn.retry_at = retry;
                }
            }
            Event::StepCompleted(step) => {
                self.usage += step.usage.unwrap_or_default();
                if let Some(cost) = step.cost {
                    *self.cost.get_or_insert(0.0) += cost;
                }
                self.sources = step.manifest.sources;
                self.answered_by = Some(step.model.profile);
                if self.phase == Phase::Calling {
                    self.phase = Phase::Acting;
                }
            }
            Event::ToolRequested(call) => self.calls.push(requested(call)),
            Event::ToolStarted(started) => self.set_call(&started.call, CallState::Running, now),
            Event::ToolCompleted(done) => self.completed(done, envelope.at),
            Event::ApprovalRequested(asked) => self.asked(asked, envelope.at),
            Event::ApprovalResolved(done) => self.resolved(done, now),
            Event::TodoChanged(todo) => self.todo = todo.items,
            Event::JobEnded(ended) => self.jobs.retain(|job| job.job != ended.job),
            Event::SessionCreated(_)
            | Event::TurnResumed(_)
            | Event::ItemCompleted(_)
            | Event::JobStopRequested(_)
            | Event::NoticeAdded(_) => {}
        }
    }

    /// The mode in force, and when it ends by itself.
    pub(crate) fn mode(&self, now: Time) -> (Mode, Option<Time>) {
        let own = self.turn.as_ref().and_then(|turn| turn.mode);
        own.filter(|(_, until)| until.is_none_or(|until| now < until))
            .unwrap_or((self.settings.mode, self.settings.mode_until))
    }

    /// Whether something on the list of what the model means to do is open.
    pub(crate) fn has_plans(&self) -> bool {
        self.todo.iter().any(|item| item.state != TodoState::Done)
    }

    /// A call is over; its command may go on in the background.
    fn completed(&mut self, done: ToolCompleted, at: Time) {
        let place = self.calls.iter().position(|call| call.view.call == done.call);
        let call = place.map(|place| self.calls.remove(place));
        if let Some(job) = done.job {
            self.jobs.push(JobView {
                job,
                call: done.call,
                command: call.and_then(|call| call.view.action.command).unwrap_or_default(),
                started_at: at,
            });
        }
    }

    fn resolved(&mut self, done: ApprovalResolved, now: Now) {
        self.approvals.retain(|view| view.id != done.approval);
        let Some(id) = &done.call else { return };
        self.set_call(id, CallState::Ready, now);
        let call = self.calls.iter_mut().find(|call| call.view.call == *id);
        if let (Some(call), Some(arguments)) = (call, done.arguments) {
            call.view.arguments = arguments;
            call.view.action = done.action.unwrap_or_default();
        }
    }

    /// Whether a turn is open.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    fn changed(&mut self, change: SessionChanged) {
        self.name = change.name.or(self.name.take());
        if change.model.is_some() {
            self.answered_by = None;
        }
        self.settings.model = change.model.or(self.settings.model.take());
        if let Some(mode) = change.mode {
            (self.settings.mode, self.settings.mode_until) = (mode, change.mode_until);
        }
        self.added_roots.extend(change.added_roots);
        self.settings.unattended = change.unattended.unwrap_or(self.settings.unattended);
    }

    fn accepted(&mut self, input: InputAccepted, at: Time) {
        if input.disposition == Disposition::Started {
            return;
        }
        let waiting = QueuedInput {
            input_id: input.input_id,
            text: plain_text(&input.content).chars().take(QUEUED_CHARACTERS).collect(),
            steer: input.disposition == Disposition::Steered,
            by: input.by,
            at,
        };
        let place = if input.urgent { 0 } else { self.queue.len() };
        self.queue.insert(place, waiting);
    }

    fn unqueue(&mut self, input_id: &InputId) {
        self.queue.retain(|waiting| waiting.input_id != *input_id);
        self.held &= !self.queue.is_empty();
    }

    fn asked(&mut self, asked: ApprovalRequested, at: Time) {
        if let Some(call) = self
            .calls
            .iter_mut()
            .find(|call| Some(&call.view.call) == asked.call.as_ref())
        {
            call.view.state = CallState::Asked;
        }
        self.approvals.push(ApprovalView {
            id: asked.approval,
            session: self.session.clone(),
            session_name: self.name.clone(),
            turn: asked.turn,
            call: asked.call,
            tool: asked.tool,
            digest: asked.digest,
            action: asked.action,
            reason: asked.reason,
            choices: asked.choices,
            rule: asked.rule,
            always: asked.always,
            requested_at: at,
            cwd: self.cwd.clone(),
        });
    }

    fn set_call(&mut self, id: &CallId, state: CallState, now: Now) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.view.call == *id) {
            call.view.state = state;
            call.since = (state == CallState::Running).then_some(now.clock);
        }
    }

    fn idle(&mut self) {
        self.phase = Phase::Idle;
        self.turn = None;
        self.calls.clear();
        self.approvals.clear();
    }
}

fn requested(call: ToolRequested) -> Call {
    let state = if call.verdict.decision == Decision::Ask {
        CallState::Asked
    } else {
        CallState::Ready
    };
    let view = CallView {
        call: call.call,
        tool: call.tool,
        state,
        action: call.action,
        arguments: call.arguments,
    };
    Call { view, since: None }
}
