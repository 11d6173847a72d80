//! Deciding: from state, context and input to events. Pure: the same three give the same events. One decision is one transaction.
//!
//! Events are collected in a [`Plan`], which folds each into a scratch state, so that what comes later in a decision sees what came
//! before.

mod acting;
mod asking;
pub(super) mod budget;
mod calling;
mod jobs;
pub(super) mod room;
mod stopping;

use super::drain::Draining;
use super::input::{Change, Context, Input, Send};
use super::state::{Stage, State, Waiting};
use super::wanted::{Due, deadline};
use protocol::event::{
    Delivery, Disposition, Event, InputAccepted, InputDelivered, InputOutcome, InputSettled, NoticeAdded, NoticeLevel,
    QueueResumed, Reason, SessionChanged, StepStarted, ToolOutcome, TurnCompleted, TurnOutcome, TurnStarted,
};
use protocol::{By, CallId, Content, InputId, ItemId, TurnId, plain_text};
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of an input that become a session's first title.
const TITLE_CHARS: usize = 80;

/// An event to be recorded, with what only the daemon reads.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) event: Event,
    pub(crate) private: Option<Value>,
}

/// Events in the making.
struct Plan<'a> {
    state: State,
    context: &'a Context<'a>,
    drafts: Vec<Draft>,
    /// How refused calls end: what the model is told. Complete whenever a call is refused in this very decision, which is the only
    /// time one is.
    refusals: BTreeMap<CallId, (ToolOutcome, String)>,
}

/// The events that follow from `input`.
pub(crate) fn decide(state: &State, context: &Context<'_>, input: Input) -> Vec<Draft> {
    let mut plan = Plan {
        state: state.clone(),
        context,
        drafts: Vec::new(),
        refusals: BTreeMap::new(),
    };
    plan.decide(input);
    plan.drafts
}

impl Plan<'_> {
    fn emit(&mut self, event: impl Into<Event>) {
        self.emit_private(event, None);
    }

    fn emit_private(&mut self, event: impl Into<Event>, private: Option<Value>) {
        let event = event.into();
        self.state.apply(self.state.seq.next(), self.context.at, &event);
        self.drafts.push(Draft { event, private });
    }

    fn decide(&mut self, input: Input) {
        self.end_timed_mode();
        match input {
            Input::Send(send) => self.accept(send),
            Input::Cancel { input_id, by } => self.cancel_input(input_id, by),
            Input::ResumeQueue { by } => {
                self.resume_queue(by);
                self.start_next();
            }
            Input::Interrupt { turn, by } => {
                if self.runs(turn.as_ref()) {
                    self.interrupt(TurnOutcome::Interrupted, by);
                }
            }
            Input::StopJob { job, by } => self.stop_job(job, by),
            Input::Answer(answer) => self.answer(*answer),
            Input::Change(change) => self.change(*change),
            Input::Refresh { environment, by } => self.refresh(environment, by),
            Input::ModelReplied(replied) => self.replied(*replied),
            Input::ModelFailed(failed) => self.failed(*failed),
            Input::ToolEnded(end) => self.tool_ended(*end),
            Input::JobEnded(end) => self.job_ended(*end),
            Input::Deadline => self.deadline(),
            Input::Unattended => self.unattended(),
            Input::Restarted => self.restarted(),
        }
    }

    /// A timed mode that is over gives way before anything is decided in it.
    fn end_timed_mode(&mut self) {
        if self
            .state
            .settings
            .mode_until
            .is_some_and(|until| until <= self.context.at)
        {
            let mode = self.state.settings.mode_after.unwrap_or_default();
            self.emit(SessionChanged {
                mode: Some(mode),
                ..unchanged(By::daemon("the time of the mode is over"))
            });
        }
    }

    /// Whether `turn` names the turn that runs; none names whichever does.
    fn runs(&self, turn: Option<&TurnId>) -> bool {
        self.state
            .turn
            .as_ref()
            .is_some_and(|running| turn.is_none_or(|turn| *turn == running.id))
    }

    fn accept(&mut self, send: Send) {
        let stage = self.state.turn.as_ref().map(|turn| turn.stage);
        let steers = matches!(send.delivery, Delivery::Auto | Delivery::Steer);
        let urgent = send.delivery == Delivery::Interrupt && stage.is_some();
        let disposition = match stage {
            // Behind what has waited since the interrupt.
            None if send.delivery == Delivery::Queue && self.state.held => Disposition::Queued,
            None => Disposition::Started,
            Some(Stage::Calling { .. } | Stage::Acting) if steers => Disposition::Steered,
            Some(_) => Disposition::Queued,
        };
        if self.state.title.is_none() {
            self.emit(titled(&send.content, &send.by));
        }
        let by = send.by.clone();
        let mode_until = send.mode_until(self.context.at);
        self.emit(InputAccepted {
            input_id: send.input_id,
            content: send.content,
            delivery: send.delivery,
            disposition,
            urgent,
            unattended: send.unattended,
            mode: send.mode,
            mode_until,
            tools: send.tools,
            timeout_ms: send.timeout_ms,
            interactive: send.interactive,
            by: send.by,
        });
        if urgent && !matches!(stage, Some(Stage::Stopping { .. })) {
            return self.interrupt(TurnOutcome::Interrupted, by);
        }
        self.resume_queue(by);
        self.start_next();
    }

    /// An interrupt holds what waits until somebody goes on with the session.
    fn resume_queue(&mut self, by: By) {
        if self.state.held && self.state.turn.is_none() {
            self.emit(QueueResumed { by });
        }
    }

    fn cancel_input(&mut self, input_id: InputId, by: By) {
        if self.state.waiting(&input_id).is_none() {
            return;
        }
        self.emit(InputSettled {
            input_id,
            outcome: InputOutcome::Cancelled,
            turn: None,
            by: Some(by),
        });
        self.advance();
    }

    fn change(&mut self, change: Change) {
        let mode = change.changed.mode;
        let mode_until = mode.and(change.mode_for_ms).map(|ms| self.context.at.plus_ms(ms));
        self.emit(SessionChanged {
            mode_until,
            ..change.changed
        });
        if let Some(mode) = mode {
            self.answer_by_mode(mode);
        }
        self.advance();
    }

    fn refresh(&mut self, environment: BTreeMap<String, String>, by: By) {
        if self.state.turn.is_none()
            && let Ok(environment) = serde_json::to_value(environment)
        {
            let private = Some(serde_json::json!({ "environment": environment }));
            self.emit_private(unchanged(by), private);
        }
    }

    fn deadline(&mut self) {
        match deadline(&self.state) {
            Some((at, due)) if at <= self.context.at => match due {
                Due::Retry => self.retry(),
                Due::Turn => self.interrupt(TurnOutcome::TimedOut, By::daemon("the turn's time is over")),
                Due::Stop => self.give_up_running(),
                // It has ended already, before anything else was decided.
                Due::Mode => {}
            },
            _ => {}
        }
    }

    fn interrupt(&mut self, outcome: TurnOutcome, by: By) {
        match self.state.turn.as_ref().map(|turn| turn.stage) {
            None => {}
            Some(Stage::Calling { .. }) => self.cut_reply(outcome, by),
            Some(Stage::Acting) => self.stop_calls(outcome, by),
            Some(Stage::Stopping {
                outcome, hard: false, ..
            }) => self.request_interrupt(outcome, true, by),
            Some(Stage::Stopping { hard: true, .. }) => {}
        }
    }

    fn restarted(&mut self) {
        self.lose_jobs();
        match self.state.turn.as_ref().map(|turn| turn.stage) {
            None => self.start_next(),
            Some(_) => self.resume(),
        }
    }

    /// Goes on with whatever the calls of the step allow.
    fn advance(&mut self) {
        match self.state.turn.as_ref().map(|turn| turn.stage) {
            Some(Stage::Acting) => self.advance_acting(),
            Some(Stage::Stopping { outcome, .. }) => self.advance_stopping(outcome),
            Some(Stage::Calling { .. }) | None => {}
        }
    }

    /// Ends the turn, and starts the next if an input waits and the queue is not held.
    fn end(&mut self, outcome: TurnOutcome, reason: Option<Reason>) {
        self.end_by(outcome, reason, None);
    }

    fn end_by(&mut self, outcome: TurnOutcome, reason: Option<Reason>, by: Option<&By>) {
        let Some(turn) = &self.state.turn else { return };
        let id = turn.id.clone();
        for input_id in turn.inputs.clone() {
            self.emit(InputSettled {
                input_id,
                outcome: outcome.into(),
                turn: Some(id.clone()),
                by: by.cloned(),
            });
        }
        let Some(turn) = self.state.turn.clone() else { return };
        let urgent = self.state.queue.iter().find(|waiting| waiting.urgent);
        let released = outcome != TurnOutcome::Interrupted || urgent.is_some();
        let goes_on = released && self.context.draining == Draining::No;
        let next = urgent.or(self.state.steers.first()).or(self.state.queue.first());
        let next = next.filter(|_| goes_on).map(|waiting| waiting.input_id.clone());
        self.emit(TurnCompleted {
            turn: id,
            outcome,
            reason,
            usage: turn.usage,
            cost: turn.cost,
            steps: turn.step,
            denied: turn.denied,
            demo: turn.demo,
            next,
        });
        self.start_next();
    }

    /// Starts a turn with the first input that waits, if none runs, the queue is not held and the daemon goes on. What a daemon that is
    /// about to stop does not start, the next one does when it reads the log.
    fn start_next(&mut self) {
        if self.state.turn.is_some() || self.state.held || self.context.draining == Draining::Yes {
            return;
        }
        let Some(Waiting { input_id, terms, .. }) = self.state.queue.first().cloned() else {
            return;
        };
        let turn = TurnId::at(self.state.seq.next());
        self.emit(TurnStarted {
            turn: turn.clone(),
            unattended: terms.unattended.unwrap_or(self.state.settings.unattended),
            mode: terms.mode,
            mode_until: terms.mode_until,
            tools: terms.tools,
            timeout_ms: terms.timeout_ms,
            interactive: terms.interactive,
            by: terms.by,
        });
        self.deliver(input_id, &turn);
        if !self.asks_about_cost() {
            self.start_step(1, 1);
        }
    }

    fn deliver(&mut self, input_id: InputId, turn: &TurnId) {
        let item = ItemId::message(self.state.seq.next());
        self.emit(InputDelivered {
            input_id,
            turn: turn.clone(),
            item,
        });
    }

    /// Says where content goes whenever nobody named the model and it is another than was said last.
    fn announce_model(&mut self) {
        let text = self
            .context
            .announce
            .clone()
            .filter(|text| self.state.announced.as_ref() != Some(text));
        if let Some(text) = text {
            self.emit(NoticeAdded {
                code: "model_choice".to_owned(),
                level: NoticeLevel::Info,
                text,
            });
        }
        let Context {
            project_notice,
            config_fault,
            ..
        } = self.context;
        let said = [&self.state.project_notice, &self.state.config_fault].map(Clone::clone);
        let files = [("project_config", project_notice), ("config", config_fault)];
        for ((code, text), said) in files.into_iter().zip(said) {
            if let Some(text) = text.clone().filter(|_| *text != said) {
                self.emit(NoticeAdded {
                    code: code.to_owned(),
                    level: NoticeLevel::Warning,
                    text,
                });
            }
        }
    }

    fn start_step(&mut self, step: u32, attempt: u32) {
        let lost = self.lost_choice();
        if lost.is_none() {
            self.announce_model();
        }
        if let Some(turn) = self.state.turn.as_ref().map(|turn| turn.id.clone()) {
            let model = self.state.settings.model.clone();
            self.emit(StepStarted {
                turn,
                step,
                attempt,
                model,
            });
        }
        if let Some(reason) = lost {
            self.wait_for_choice(reason);
        }
    }
}

/// A change of nothing, to carry a private part or to be filled.
pub(super) fn unchanged(by: By) -> SessionChanged {
    SessionChanged {
        name: None,
        title: None,
        model: None,
        mode: None,
        mode_until: None,
        unattended: None,
        archived: None,
        limits: None,
        added_roots: Vec::new(),
        by,
    }
}

/// The first title: the first line of the first input.
fn titled(content: &[Content], by: &By) -> SessionChanged {
    let text = plain_text(content);
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("(image)");
    let title = line.chars().take(TITLE_CHARS).collect();
    SessionChanged {
        title: Some(title),
        ..unchanged(by.clone())
    }
}
