//! The fold: how each event changes the state. Total, for any order of events a log can hold; an event that does not fit changes
//! nothing, since a log is a fact and not a request.

use super::decide::budget::{COST_DAY, COST_SESSION};
use super::decide::room::{CONTEXT_BUDGET, CONTEXT_WINDOW, INSTRUCTIONS};
use super::state::{
    Calibration, Call, Clock, Job, MAX_DENIED, MAX_GRANTS, MAX_READ_FILES, Pending, Progress, Stage, State, Terms,
    Turn, Waiting,
};
use crate::tool::jobs::MAX_ENDED;
use protocol::event::{
    Decision, Denied, Disposition, Event, GoOnLimit, InputAccepted, Resolution, SessionChanged, ToolCompleted,
    ToolRequested, TurnOutcome, TurnStarted,
};
use protocol::{CallId, InputId, Mode, Seq, Time};

impl State {
    /// Takes in the event at `seq`, decided at `at`.
    pub(crate) fn apply(&mut self, seq: Seq, at: Time, event: &Event) {
        let resumed = matches!(event, Event::TurnResumed(_));
        if let Some(turn) = &mut self.turn {
            if !resumed && !turn.waits_for_people() {
                turn.clock.spent_ms += at.ms_since(turn.clock.counted_to);
            }
            turn.clock.counted_to = at;
        }
        self.seq = seq;
        self.at = at;
        self.fold(seq, at, event);
    }

    fn fold(&mut self, seq: Seq, at: Time, event: &Event) {
        match event {
            Event::SessionCreated(created) => {
                self.cwd.clone_from(&created.cwd);
                self.root.clone_from(&created.root);
                self.added_roots.clone_from(&created.added_roots);
                self.settings = created.settings.clone();
                self.name.clone_from(&created.name);
            }
            Event::SessionChanged(changed) => self.change(changed),
            Event::InputAccepted(accepted) => self.accept(seq, accepted),
            Event::InputDelivered(delivered) => self.deliver(&delivered.input_id),
            Event::InputSettled(settled) => self.settle(&settled.input_id),
            Event::QueueResumed(_) => self.held = false,
            Event::TurnStarted(started) => self.start(at, started),
            Event::TurnInterruptRequested(request) => self.with_turn(|turn| {
                turn.stage = Stage::Stopping {
                    outcome: request.outcome,
                    since: at,
                    hard: request.hard,
                };
            }),
            Event::TurnResumed(resumed) => self.with_turn(|turn| turn.lives = resumed.lives),
            Event::TurnCompleted(completed) => self.complete(completed.outcome),
            Event::StepStarted(started) => self.with_turn(|turn| {
                if started.step != turn.step {
                    turn.failures = 0;
                    turn.failing_since = None;
                }
                (turn.step, turn.attempt, turn.step_seq) = (started.step, started.attempt, seq);
                turn.stage = Stage::Calling { retry_at: None };
                turn.calls.clear();
            }),
            Event::StepFailed(failed) => self.with_turn(|turn| {
                turn.failures += 1;
                turn.failing_since.get_or_insert(at);
                // Without another try the turn ends in the same transaction, and nothing is wanted any more.
                turn.stage = failed
                    .retry_at
                    .map_or(Stage::Acting, |at| Stage::Calling { retry_at: Some(at) });
                turn.usage += failed.usage.unwrap_or_default();
            }),
            Event::StepCompleted(completed) => {
                if let Some(usage) = completed.usage {
                    self.calibration.learn(completed.manifest.tokens, usage.input);
                }
                self.usage += completed.usage.unwrap_or_default();
                if let Some(cost) = completed.cost {
                    *self.cost.get_or_insert(0.0) += cost;
                }
                self.with_turn(|turn| {
                    turn.stage = Stage::Acting;
                    turn.lives = 0;
                    turn.stop = Some(completed.stop);
                    turn.usage += completed.usage.unwrap_or_default();
                    turn.demo |= completed.model.origin == "demo";
                    if let Some(cost) = completed.cost {
                        *turn.cost.get_or_insert(0.0) += cost;
                    }
                });
            }
            Event::ToolRequested(requested) => {
                let unasked = self.mode() == Mode::None && requested.verdict.decision == Decision::Deny;
                self.with_turn(|turn| {
                    turn.calls.push(call(requested));
                    if unasked {
                        turn.note_denied(&requested.call, &requested.verdict.reason);
                    }
                });
            }
            Event::ApprovalRequested(request) => self.with_turn(|turn| {
                let pending = Pending {
                    id: request.approval.clone(),
                    seq,
                };
                match &request.call {
                    None => {
                        turn.go_on = Some(pending);
                        turn.asks = request.limit;
                        if turn.step == 0 {
                            // Nothing runs: it waits for a person before its first model call.
                            turn.stage = Stage::Acting;
                        }
                    }
                    Some(id) => {
                        if let Some(call) = turn.call_mut(id) {
                            call.firm = request.firm;
                            call.approval = Some(pending);
                        }
                    }
                }
            }),
            Event::ApprovalResolved(resolved) => {
                let allows = resolved.decision.allows();
                if let Some(grant) = resolved
                    .grant
                    .as_ref()
                    .and_then(|grant| serde_json::from_value(grant.clone()).ok())
                {
                    self.grants.push(grant);
                    let over = self.grants.len().saturating_sub(MAX_GRANTS);
                    self.grants.drain(..over);
                }
                let more_steps = self.settings.limits.max_steps;
                self.with_turn(|turn| match &resolved.call {
                    None => {
                        turn.go_on = None;
                        if allows && turn.asks == Some(GoOnLimit::Cost) {
                            turn.cost_allowed = true;
                        } else if allows {
                            turn.step_limit = turn.step_limit.saturating_add(more_steps);
                        }
                    }
                    Some(id) => {
                        if resolved.decision == Resolution::Expired {
                            turn.note_denied(id, "nobody could answer");
                        }
                        let edited = resolved.arguments.is_some();
                        if let Some(call) = turn.call_mut(id).filter(|_| edited) {
                            call.edited = Some(seq);
                        }
                        // Its next question stands in the same transaction.
                        if resolved.decision != Resolution::Edited {
                            turn.advance_call(id, if allows { Progress::Ready } else { Progress::Refused });
                        }
                    }
                });
            }
            Event::ToolStarted(started) => self.with_turn(|turn| turn.advance_call(&started.call, Progress::Running)),
            Event::ToolCompleted(completed) => self.finish_call(completed),
            Event::NoticeAdded(notice) => match notice.code.as_str() {
                "model_choice" => self.announced = Some(notice.text.clone()),
                "config" => self.config_fault = Some(notice.text.clone()),
                "project_config" => self.project_notice = Some(notice.text.clone()),
                COST_SESSION => self.session_cost_noticed = Some(notice.text.clone()),
                COST_DAY => self.day_cost_noticed = Some(notice.text.clone()),
                INSTRUCTIONS => self.remarked = Some(notice.text.clone()),
                CONTEXT_WINDOW => self.doubted = Some(notice.text.clone()),
                CONTEXT_BUDGET => self.context_noticed = true,
                _ => {}
            },
            Event::TodoChanged(changed) => self.todo.clone_from(&changed.items),
            Event::JobStopRequested(request) => {
                let job = self.jobs.iter_mut().find(|job| job.id == request.job);
                if let Some(job) = job {
                    job.stopping = Some(at);
                }
            }
            Event::JobEnded(ended) => {
                self.jobs.retain(|job| job.id != ended.job);
                self.ended_jobs.push((ended.job.clone(), seq));
                let over = self.ended_jobs.len().saturating_sub(MAX_ENDED);
                self.ended_jobs.drain(..over);
            }
            Event::ItemCompleted(_) => {}
        }
    }

    fn with_turn(&mut self, change: impl FnOnce(&mut Turn)) {
        if let Some(turn) = &mut self.turn {
            change(turn);
        }
    }

    fn change(&mut self, changed: &SessionChanged) {
        let settings = &mut self.settings;
        if changed.name.is_some() {
            self.name.clone_from(&changed.name);
        }
        if changed.title.is_some() {
            self.title.clone_from(&changed.title);
        }
        if changed.model.is_some() {
            // Another model has another budget and another tokenizer.
            (self.context_noticed, self.calibration) = (false, Calibration::default());
            settings.model.clone_from(&changed.model);
        }
        if let Some(mode) = changed.mode {
            let before = settings.mode_after.unwrap_or(settings.mode);
            settings.mode_after = changed.mode_until.map(|_| before);
            settings.mode_until = changed.mode_until;
            settings.mode = mode;
        }
        settings.unattended = changed.unattended.unwrap_or(settings.unattended);
        settings.limits = changed.limits.unwrap_or(settings.limits);
        self.archived = changed.archived.unwrap_or(self.archived);
        for added in &changed.added_roots {
            if !self.added_roots.contains(added) {
                self.added_roots.push(added.clone());
            }
        }
    }

    fn accept(&mut self, seq: Seq, accepted: &InputAccepted) {
        let waiting = Waiting {
            input_id: accepted.input_id.clone(),
            seq,
            urgent: accepted.urgent,
            terms: Terms {
                mode: accepted.mode,
                mode_until: accepted.mode_until,
                unattended: accepted.unattended,
                tools: accepted.tools.clone(),
                timeout_ms: accepted.timeout_ms,
                interactive: accepted.interactive,
                by: accepted.by.clone(),
            },
        };
        match accepted.disposition {
            Disposition::Steered => self.steers.push(waiting),
            Disposition::Started => {
                self.queue.insert(0, waiting);
                self.held = false;
            }
            Disposition::Queued if waiting.urgent => {
                self.queue.insert(0, waiting);
                self.held = false;
            }
            Disposition::Queued => self.queue.push(waiting),
        }
    }

    fn forget_waiting(&mut self, input_id: &InputId) {
        self.queue.retain(|waiting| waiting.input_id != *input_id);
        self.steers.retain(|waiting| waiting.input_id != *input_id);
        self.held &= !self.queue.is_empty();
    }

    fn deliver(&mut self, input_id: &InputId) {
        self.forget_waiting(input_id);
        self.with_turn(|turn| turn.inputs.push(input_id.clone()));
    }

    fn settle(&mut self, input_id: &InputId) {
        self.forget_waiting(input_id);
        self.with_turn(|turn| turn.inputs.retain(|id| id != input_id));
    }

    fn start(&mut self, at: Time, started: &TurnStarted) {
        self.held = false;
        self.turn = Some(Turn {
            id: started.turn.clone(),
            started_at: at,
            by: started.by.clone(),
            mode: started.mode,
            mode_until: started.mode_until,
            unattended: started.unattended,
            tools: started.tools.clone(),
            interactive: started.interactive,
            clock: Clock {
                limit_ms: started.timeout_ms,
                spent_ms: 0,
                counted_to: at,
            },
            inputs: Vec::new(),
            step: 0,
            attempt: 0,
            step_seq: Seq(0),
            stage: Stage::Calling { retry_at: None },
            calls: Vec::new(),
            go_on: None,
            step_limit: self.settings.limits.max_steps,
            asks: None,
            cost_allowed: false,
            failures: 0,
            failing_since: None,
            lives: 0,
            stop: None,
            usage: protocol::Usage::default(),
            cost: None,
            denied: Vec::new(),
            demo: false,
        });
    }

    fn complete(&mut self, outcome: TurnOutcome) {
        self.turn = None;
        self.outcome = Some(outcome);
        let (urgent, rest): (Vec<_>, Vec<_>) = self.queue.drain(..).partition(|waiting| waiting.urgent);
        let hold = outcome == TurnOutcome::Interrupted && urgent.is_empty();
        self.queue = urgent.into_iter().chain(self.steers.drain(..)).chain(rest).collect();
        self.held = hold && !self.queue.is_empty();
    }

    fn finish_call(&mut self, completed: &ToolCompleted) {
        self.with_turn(|turn| turn.advance_call(&completed.call, Progress::Done));
        if let Some(id) = completed.job.clone() {
            self.jobs.push(Job {
                id,
                call: completed.call.clone(),
                started_at: self.at,
                stopping: None,
            });
        }
        for (path, hash) in &completed.files {
            if self.read_files.len() >= MAX_READ_FILES && !self.read_files.contains_key(path) {
                self.read_files.pop_first();
            }
            self.read_files.insert(path.clone(), hash.clone());
        }
    }
}

impl Turn {
    /// Notes a call that was denied because nobody was there, or nobody was to be asked.
    fn note_denied(&mut self, id: &CallId, reason: &str) {
        let Some(tool) = self.call(id).map(|call| call.tool.clone()) else {
            return;
        };
        if self.denied.len() < MAX_DENIED {
            self.denied.push(Denied {
                call: id.clone(),
                tool,
                reason: reason.to_owned(),
            });
        }
    }

    fn advance_call(&mut self, id: &CallId, progress: Progress) {
        if let Some(call) = self.call_mut(id) {
            call.progress = progress;
        }
    }
}

fn call(requested: &ToolRequested) -> Call {
    let progress = match requested.verdict.decision {
        _ if requested.argument_error.is_some() => Progress::Refused,
        Decision::Allow => Progress::Ready,
        Decision::Ask => Progress::Asked,
        Decision::Deny | Decision::Blocked => Progress::Refused,
    };
    Call {
        id: requested.call.clone(),
        tool: requested.tool.clone(),
        writes: requested.writes,
        progress,
        approval: None,
        firm: false,
        edited: None,
    }
}
