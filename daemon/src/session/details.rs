//! The texts that go with a state: open calls, pending approvals, waiting inputs. The state names them by `seq`; here they are kept
//! while they are open, and read back from the log when a session is opened.

use super::state::State;
use crate::log::{EventLog, LogError, SessionKey};
use crate::target::sandbox;
use protocol::event::{ApprovalRequested, Event, ToolRequested};
use protocol::frame::{ApprovalView, CallView, JobView, Phase, QueuedInput, SandboxView, Snapshot, TurnView};
use protocol::{ApprovalId, CallId, InputId, JobId, Seq, SessionId, Time, plain_text};
use std::collections::BTreeMap;

/// Characters of a waiting input that are shown.
const QUEUED_CHARS: usize = 200;

/// Texts of what is open.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) calls: BTreeMap<CallId, ToolRequested>,
    pub(crate) approvals: BTreeMap<ApprovalId, (ApprovalRequested, Time)>,
    inputs: BTreeMap<InputId, QueuedInput>,
    /// What runs in the background; nothing does when a session is opened.
    commands: BTreeMap<JobId, String>,
}

impl Details {
    /// Keeps what the event opens.
    pub(crate) fn note(&mut self, at: Time, event: &Event) {
        match event {
            Event::ToolRequested(requested) => {
                self.calls.insert(requested.call.clone(), requested.clone());
            }
            Event::ApprovalResolved(resolved) => {
                if let Some(call) = resolved.call.as_ref().and_then(|call| self.calls.get_mut(call))
                    && let Some(arguments) = &resolved.arguments
                {
                    call.arguments.clone_from(arguments);
                    call.digest.clone_from(&resolved.digest);
                    call.action = resolved.action.clone().unwrap_or_default();
                }
            }
            Event::ApprovalRequested(request) => {
                self.approvals.insert(request.approval.clone(), (request.clone(), at));
            }
            Event::InputAccepted(accepted) => {
                let waiting = QueuedInput {
                    input_id: accepted.input_id.clone(),
                    text: plain_text(&accepted.content).chars().take(QUEUED_CHARS).collect(),
                    steer: false,
                    by: accepted.by.clone(),
                    at,
                };
                self.inputs.insert(accepted.input_id.clone(), waiting);
            }
            Event::ToolCompleted(completed) => {
                let command = self
                    .calls
                    .get(&completed.call)
                    .and_then(|call| call.action.command.clone());
                self.commands.extend(completed.job.clone().zip(command));
            }
            _ => {}
        }
    }

    /// Lets go of what is not open any more.
    pub(crate) fn prune(&mut self, state: &State) {
        self.calls
            .retain(|id, _| state.turn.as_ref().is_some_and(|turn| turn.call(id).is_some()));
        self.approvals
            .retain(|id, _| state.pending().any(|(pending, _)| pending.id == *id));
        self.inputs.retain(|id, _| state.waiting(id).is_some());
        self.commands.retain(|id, _| state.jobs.iter().any(|job| job.id == *id));
    }

    /// Reads back what `state` has open.
    pub(crate) async fn load(log: &EventLog, session: SessionKey, state: &State) -> Result<Self, LogError> {
        let mut details = Self::default();
        let calls = state
            .turn
            .iter()
            .flat_map(|turn| &turn.calls)
            .filter_map(|call| call.id.seq());
        let edits = state
            .turn
            .iter()
            .flat_map(|turn| &turn.calls)
            .filter_map(|call| call.edited);
        let approvals = state.pending().map(|(pending, _)| pending.seq);
        let inputs = state.steers.iter().chain(&state.queue).map(|waiting| waiting.seq);
        let open: Vec<Seq> = calls.chain(edits).chain(approvals).chain(inputs).collect();
        for Seq(seq) in open {
            for row in log.read(session, seq.saturating_sub(1), 1).await? {
                if let Ok(Some(event)) = Event::parse(&row.kind, &row.body) {
                    details.note(Time(row.at_ms), &event);
                }
            }
        }
        Ok(details)
    }
}

/// Whether the turn of an earlier life waits for somebody to resume it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parked {
    Yes,
    No,
}

/// The snapshot of a state, without what is open and who is there.
pub(crate) fn snapshot(
    session: &SessionId,
    state: &State,
    details: &Details,
    parked: Parked,
    sandbox: &sandbox::Settings,
) -> Snapshot {
    let turn = state.turn.as_ref();
    let retry_at = turn.and_then(|turn| match turn.stage {
        super::state::Stage::Calling { retry_at } => retry_at,
        _ => None,
    });
    let approvals = state
        .pending()
        .filter_map(|(pending, _)| details.approvals.get(&pending.id));
    let waiting = state
        .steers
        .iter()
        .map(|waiting| (waiting, true))
        .chain(state.queue.iter().map(|waiting| (waiting, false)));
    Snapshot {
        session: session.clone(),
        head: state.seq,
        name: state.name.clone(),
        title: state.title.clone(),
        cwd: state.cwd.clone(),
        root: state.root.clone(),
        added_roots: state.added_roots.clone(),
        settings: state.settings.clone(),
        phase: if parked == Parked::Yes {
            Phase::Parked
        } else {
            state.phase()
        },
        turn: turn.map(|turn| TurnView {
            turn: turn.id.clone(),
            step: turn.step,
            attempt: turn.attempt,
            retry_at,
            started_at: turn.started_at,
            mode: turn.mode,
            mode_until: turn.mode_until,
            by: turn.by.clone(),
        }),
        open: Vec::new(),
        calls: turn
            .iter()
            .flat_map(|turn| &turn.calls)
            .filter_map(|call| {
                let requested = details.calls.get(&call.id)?;
                Some(CallView {
                    call: call.id.clone(),
                    tool: call.tool.clone(),
                    state: call.progress.into(),
                    action: requested.action.clone(),
                    arguments: requested.arguments.clone(),
                })
            })
            .collect(),
        approvals: approvals
            .map(|(request, at)| approval_view(session, state, request, *at))
            .collect(),
        queue: waiting
            .filter_map(|(waiting, steer)| {
                let input = details.inputs.get(&waiting.input_id)?;
                Some(QueuedInput { steer, ..input.clone() })
            })
            .collect(),
        held: state.held,
        todo: state.todo.clone(),
        jobs: state
            .jobs
            .iter()
            .map(|job| JobView {
                job: job.id.clone(),
                call: job.call.clone(),
                command: details.commands.get(&job.id).cloned().unwrap_or_default(),
                started_at: job.started_at,
            })
            .collect(),
        usage: state.usage,
        cost: state.cost,
        sandbox: Some(sandbox_view(sandbox)),
        presence: Vec::new(),
    }
}

fn sandbox_view(settings: &sandbox::Settings) -> SandboxView {
    let mode = settings.effective_mode();
    SandboxView {
        mode: mode.as_str().to_owned(),
        network: mode == sandbox::Mode::Off || settings.network == sandbox::Network::On,
        reduced: mode != sandbox::Mode::Off && settings.support.form == Some(sandbox::Form::Landlock),
    }
}

fn approval_view(session: &SessionId, state: &State, request: &ApprovalRequested, at: Time) -> ApprovalView {
    let request = request.clone();
    ApprovalView {
        id: request.approval,
        session: session.clone(),
        session_name: state.name.clone().or_else(|| state.title.clone()),
        turn: request.turn,
        call: request.call,
        tool: request.tool,
        digest: request.digest,
        action: request.action,
        reason: request.reason,
        choices: request.choices,
        rule: request.rule,
        always: request.always,
        requested_at: at,
        cwd: state.cwd.clone(),
    }
}
