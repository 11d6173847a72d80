//! Waiting for the answer to one input: its turn's frames as they come, the person's keys, the signals, until the input has had
//! its terminal event. The result itself is asked of the daemon at the end.

use super::Arguments;
use super::deliver::Delivered;
use super::shown::{Shown, headline};
use crate::ask::{Question, Reply, Tty, reply};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Deltas, Follow, News};
use crate::invocation::Invocation;
use crate::output::Output;
use crate::result;
use crate::signals::{Caught, Signals};
use protocol::client::{ClientError, Connect};
use protocol::event::{ApprovalRequested, ApprovalResolved, Event, Resolution};
use protocol::frame::{ApprovalView, Snapshot};
use protocol::method::{
    AnswerParams, ApprovalAnswer, InterruptParams, QueueCancel, QueueCancelParams, SessionInfo, TurnInterrupt,
    TurnResult, TurnWait, WaitParams,
};
use protocol::script::ResultLine;
use protocol::{ApprovalId, Envelope, ErrorKind, Frame, InputId, Seq, TurnId, short, wording};
use std::collections::HashSet;

/// Whether the input has had its terminal event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    GoesOn,
    Over,
}

/// Where the program stands with the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum History {
    /// Events from before we attached come; what they ask may be answered already.
    Past,
    /// The snapshot came.
    Live,
}

/// One input and all that is known of it.
struct Watch {
    output: Output,
    /// A frame a line: with or without deltas.
    json: Option<Deltas>,
    session: SessionInfo,
    input: InputId,
    /// The turn that took the input, once one did.
    turn: Option<TurnId>,
    history: History,
    shown: Shown,
    tty: Option<Tty>,
    approvals: Vec<ApprovalView>,
    question: Option<Question>,
    /// Approvals that were told or asked once.
    told: HashSet<ApprovalId>,
    /// Approvals answered from here: who answered is no news.
    answered: HashSet<ApprovalId>,
    notices: HashSet<String>,
    /// Ctrl-C was pressed once.
    interrupted: bool,
}

/// Follows the turn to its end and prints its result.
pub(super) async fn watch(
    invocation: &Invocation,
    arguments: &Arguments,
    connect: Connect,
    delivered: Delivered,
    tty: Option<Tty>,
) -> Result<Exit, Failure> {
    let Delivered { session, sent } = delivered;
    let output = invocation.output;
    let streams = output.on_terminal() && !arguments.json;
    let deltas = if streams || arguments.deltas {
        Deltas::Wanted
    } else {
        Deltas::Unwanted
    };
    let before = Seq(sent.seq.0.saturating_sub(1));
    let mut follow = Follow::start(connect, session.id.clone(), before, deltas).await?;
    let mut watch = Watch {
        output,
        json: arguments.json.then_some(if arguments.deltas {
            Deltas::Wanted
        } else {
            Deltas::Unwanted
        }),
        session,
        input: sent.input_id,
        turn: None,
        history: History::Past,
        shown: Shown::new(output, arguments.json),
        tty,
        approvals: Vec::new(),
        question: None,
        told: HashSet::new(),
        answered: HashSet::new(),
        notices: HashSet::new(),
        interrupted: false,
    };
    if let Some(exit) = watch.run(&mut follow).await? {
        return watch.detach(exit);
    }
    let result = watch.result(&mut follow).await?;
    watch.print(&result)
}

impl Watch {
    /// Until the input is settled: `None`; or until the person or the system wants us gone.
    async fn run(&mut self, follow: &mut Follow) -> Result<Option<Exit>, Failure> {
        let mut signals = Signals::new()?;
        loop {
            tokio::select! {
                news = follow.next() => {
                    if self.take(&news?)? == Progress::Over {
                        return Ok(None);
                    }
                    self.ask();
                }
                reply = reply(&mut self.question) => self.answer(follow, reply).await?,
                caught = signals.next() => match caught {
                    Caught::Interrupt if self.interrupted => {
                        self.shown.fresh_line();
                        return Ok(Some(Exit::CtrlC));
                    }
                    Caught::Interrupt => self.interrupt(follow).await?,
                    Caught::Terminate => return Ok(Some(Exit::Terminated)),
                    Caught::HangUp => return Ok(Some(Exit::HangUp)),
                },
            }
        }
    }

    fn take(&mut self, news: &News) -> Result<Progress, Failure> {
        match news {
            News::Frame(frame) => self.frame(frame),
            News::Lost(what) => {
                self.shown.fresh_line();
                let line_end = if self.question.is_some() { "\n" } else { "" };
                self.output.tell(&format!(
                    "{line_end}{}",
                    self.output.dim(&format!("{what}; attaching again"))
                ));
                Ok(Progress::GoesOn)
            }
        }
    }

    /// One frame: printed as it is, or shown to a person.
    fn frame(&mut self, frame: &Frame) -> Result<Progress, Failure> {
        if let Some(deltas) = self.json
            && (deltas == Deltas::Wanted || !matches!(frame, Frame::Delta(_)))
        {
            self.output.json(frame)?;
        }
        match frame {
            Frame::Event(envelope) => return self.event(envelope),
            Frame::Snapshot(snapshot) => self.snapshot(snapshot)?,
            Frame::Delta(delta) if self.turn.is_some() => self.shown.delta(delta)?,
            Frame::Delta(_) | Frame::Presence(_) | Frame::End(_) | Frame::Unknown(_) => {}
        }
        Ok(Progress::GoesOn)
    }

    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        self.history = History::Live;
        self.approvals.clone_from(&snapshot.approvals);
        let gone = |question: &Question| !snapshot.approvals.iter().any(|view| view.id == question.view.id);
        if self.question.as_ref().is_some_and(gone) {
            self.question = None;
        }
        if let Some(question) = &self.question {
            question.again();
        }
        let ours = self.turn.is_some() && self.turn.as_ref() == snapshot.turn.as_ref().map(|turn| &turn.turn);
        if ours {
            for item in &snapshot.open {
                self.shown.open(item)?;
            }
        } else if snapshot.held && snapshot.queue.iter().any(|queued| queued.input_id == self.input) {
            let session = short(self.session.id.as_str());
            self.output.tell(&format!(
                "the queue of this session is held since an interrupt\nhint: `agentctl queue resume {session}` lets it go on"
            ));
        }
        Ok(())
    }

    fn event(&mut self, envelope: &Envelope) -> Result<Progress, Failure> {
        let Some(event) = envelope.event() else {
            return Ok(Progress::GoesOn);
        };
        match event {
            Event::InputDelivered(delivered) if delivered.input_id == self.input => self.turn = Some(delivered.turn),
            // Its turn's end follows in the same transaction and is worth having in the output.
            Event::InputSettled(settled) if settled.input_id == self.input => match settled.turn {
                Some(turn) => self.turn = Some(turn),
                None => return Ok(Progress::Over),
            },
            Event::TurnCompleted(completed) if Some(&completed.turn) == self.turn.as_ref() => {
                self.shown.fresh_line();
                self.question = None;
                return Ok(Progress::Over);
            }
            Event::NoticeAdded(notice) if self.notices.insert(notice.text.clone()) => {
                self.shown.fresh_line();
                self.output.tell(&format!("note: {}", self.output.inline(&notice.text)));
            }
            Event::ApprovalRequested(requested) => self.requested(requested, envelope),
            Event::ApprovalResolved(resolved) => self.resolved(&resolved),
            event => self.of_turn(&event)?,
        }
        Ok(Progress::GoesOn)
    }

    /// What our own turn does.
    fn of_turn(&mut self, event: &Event) -> Result<(), Failure> {
        let ours = |turn: &TurnId| Some(turn) == self.turn.as_ref();
        match event {
            Event::ItemCompleted(item) if ours(&item.turn) => {
                self.shown.completed(&item.item, item.item_type, &item.text)?;
            }
            Event::StepFailed(step) if ours(&step.turn) && step.retry_at.is_some() => {
                self.shown.restarted(&step.error.message);
            }
            Event::ToolRequested(call) if ours(&call.turn) => self.shown.requested(call),
            Event::ToolCompleted(call) if self.turn.is_some() => self.shown.finished(call),
            _ => {}
        }
        Ok(())
    }

    fn requested(&mut self, asked: ApprovalRequested, envelope: &Envelope) {
        self.approvals.push(ApprovalView {
            id: asked.approval,
            session: self.session.id.clone(),
            session_name: self.session.name.clone(),
            turn: asked.turn,
            call: asked.call,
            tool: asked.tool,
            digest: asked.digest,
            action: asked.action,
            reason: asked.reason,
            choices: asked.choices,
            rule: asked.rule,
            requested_at: envelope.at,
            cwd: self.session.cwd.clone(),
        });
    }

    fn resolved(&mut self, resolved: &ApprovalResolved) {
        self.approvals.retain(|view| view.id != resolved.approval);
        if self
            .question
            .as_ref()
            .is_some_and(|question| question.view.id == resolved.approval)
        {
            self.question = None;
            self.output.whisper("\n");
        }
        // What expired is told with the result.
        let news = resolved.decision != Resolution::Expired
            && self.told.contains(&resolved.approval)
            && !self.answered.contains(&resolved.approval);
        if news && self.history == History::Live {
            let line = wording::resolution_line(resolved.decision, &resolved.by, resolved.feedback.as_deref());
            self.output.tell(&line);
        }
    }

    /// Puts the oldest question, or says that one waits where nobody can be asked here.
    fn ask(&mut self) {
        if self.question.is_some() || self.history == History::Past {
            return;
        }
        let Some(view) = self.approvals.iter().find(|view| !self.told.contains(&view.id)) else {
            return;
        };
        self.shown.fresh_line();
        self.told.insert(view.id.clone());
        let asked = self
            .tty
            .as_ref()
            .and_then(|tty| Question::put(view.clone(), tty, self.output));
        if asked.is_none() {
            let tool = view.tool.as_deref().unwrap_or("the turn");
            let line = headline(tool, &view.action, &serde_json::Value::Null);
            let id = short(view.id.as_str());
            self.output.tell(&format!(
                "waits for approval {id}: {line}\nhint: `agentctl approve {id}` or `agentctl deny {id}`"
            ));
        }
        self.question = asked;
    }

    async fn answer(&mut self, follow: &mut Follow, reply: Option<Reply>) -> Result<(), Failure> {
        let Some(question) = self.question.take() else {
            return Ok(());
        };
        let Some(reply) = reply else {
            // The terminal is gone, so nobody can be asked here any more.
            self.tty = None;
            return Ok(());
        };
        let params = AnswerParams {
            id: question.view.id.clone(),
            digest: question.view.digest.clone(),
            decision: reply.decision,
            feedback: reply.feedback,
        };
        drop(question);
        match follow.call::<ApprovalAnswer>(&params).await {
            Ok(_) => drop(self.answered.insert(params.id)),
            // Its event says who was first.
            Err(Failure::Client(error)) if error.kind() == Some(ErrorKind::AlreadyResolved) => {}
            Err(failure) => return Err(failure),
        }
        self.ask();
        Ok(())
    }

    /// The first Ctrl-C: ends the turn, or takes the input out of the queue.
    async fn interrupt(&mut self, follow: &mut Follow) -> Result<(), Failure> {
        self.interrupted = true;
        self.question = None;
        self.shown.fresh_line();
        self.output
            .tell(&self.output.dim("interrupting; Ctrl-C again leaves at once"));
        let session = self.session.id.0.clone();
        let result = match self.turn.clone() {
            Some(turn) => {
                let turn = Some(turn);
                follow
                    .call::<TurnInterrupt>(&InterruptParams { session, turn })
                    .await
                    .map(drop)
            }
            None => {
                let input_id = self.input.clone();
                follow
                    .call::<QueueCancel>(&QueueCancelParams { session, input_id })
                    .await
                    .map(drop)
            }
        };
        match result {
            // It began or ended in between, which its next event says.
            Err(Failure::Client(ClientError::Rpc(error))) => {
                self.output
                    .tell(&format!("note: {}", self.output.inline(&error.message)));
                Ok(())
            }
            result => result,
        }
    }

    /// Leaves the turn to itself.
    fn detach(&mut self, exit: Exit) -> Result<Exit, Failure> {
        self.question = None;
        let session = &self.session.id;
        if self.json.is_some() {
            self.output.json(&ResultLine {
                session: Some(session.clone()),
                input_id: Some(self.input.clone()),
                turn: self.turn.clone(),
                ..ResultLine::new("detached", exit.code())
            })?;
        }
        self.output.tell(&format!(
            "session {} goes on without this client",
            short(session.as_str())
        ));
        Ok(exit)
    }

    async fn result(&self, follow: &mut Follow) -> Result<TurnResult, Failure> {
        let params = WaitParams {
            session: self.session.id.0.clone(),
            input_id: Some(self.input.clone()),
            turn: None,
        };
        follow.call::<TurnWait>(&params).await
    }

    fn print(&self, turn: &TurnResult) -> Result<Exit, Failure> {
        let exit = match Exit::of(turn) {
            Exit::Interrupted if self.interrupted => Exit::CtrlC,
            exit => exit,
        };
        if self.json.is_none() && !self.shown.streams() {
            result::print_text(&self.output, turn)?;
        }
        if exit == Exit::CtrlC {
            self.output.tell("interrupted");
        } else {
            result::tell(&self.output, turn);
        }
        if self.json.is_some() {
            self.output.json(&result::line(turn, Some(&self.input), exit))?;
        }
        Ok(exit)
    }
}
