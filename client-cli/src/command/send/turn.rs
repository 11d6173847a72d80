//! Waiting for the answer to one input: its turn's frames as they come, the person's keys, the signals, until the input has had
//! its terminal event. The result itself is asked of the daemon at the end.

use super::Arguments;
use super::asking::Asking;
use super::shown::Shown;
use crate::ask::Tty;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follow, News};
use crate::invocation::Invocation;
use crate::output::Output;
use crate::result;
use crate::signals::{Caught, Signals};
use protocol::client::ClientError;
use protocol::event::{Disposition, Event};
use protocol::frame::Snapshot;
use protocol::method::{
    InterruptParams, QueueCancel, QueueCancelParams, Sent, SessionInfo, TurnInterrupt, TurnResult, TurnWait, WaitParams,
};
use protocol::script::ResultLine;
use protocol::{Envelope, Frame, InputId, TurnId, short, wording};
use std::collections::HashSet;
use std::time::Instant;

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
    /// A frame a line.
    json: bool,
    session: SessionInfo,
    input: InputId,
    /// The turn that the input began by itself, known before any of its events came.
    begun: Option<TurnId>,
    /// The turn that took the input, once one did.
    turn: Option<TurnId>,
    history: History,
    shown: Shown,
    asking: Asking,
    /// What was told already.
    notices: HashSet<String>,
    /// Ctrl-C was pressed once.
    interrupted: bool,
}

/// Follows the turn to its end and prints its result.
pub(super) async fn watch(
    invocation: &Invocation,
    arguments: &Arguments,
    mut follow: Follow,
    session: SessionInfo,
    sent: Sent,
    tty: Option<Tty>,
    signals: Signals,
) -> Result<Exit, Failure> {
    let output = invocation.output;
    let (begun, terminal) = (Instant::now(), tty.clone());
    let mut watch = Watch {
        output,
        json: arguments.json,
        session,
        begun: sent.turn.filter(|_| sent.disposition == Disposition::Started),
        input: sent.input_id,
        turn: None,
        history: History::Past,
        shown: Shown::new(output, arguments.json),
        asking: Asking::new(output, tty),
        // A mistake of the configuration was told as the connection was made.
        notices: invocation.warned().map(str::to_owned).into_iter().collect(),
        interrupted: false,
    };
    if let Some(exit) = watch.run(&mut follow, signals).await? {
        return watch.detach(exit);
    }
    let result = watch.result(&mut follow).await?;
    // Who interrupts it is there.
    if let Some(tty) = terminal.filter(|_| !watch.interrupted) {
        tty.ring_at_end(begun.elapsed(), output);
    }
    watch.print(&result)
}

impl Watch {
    /// Until the input is settled: `None`; or until the person or the system wants us gone.
    async fn run(&mut self, follow: &mut Follow, mut signals: Signals) -> Result<Option<Exit>, Failure> {
        loop {
            tokio::select! {
                news = follow.next() => {
                    if self.take(&news?)? == Progress::Over {
                        return Ok(None);
                    }
                    if self.history == History::Live {
                        self.asking.ask(&mut self.shown);
                    }
                }
                reply = self.asking.reply() => {
                    self.asking.answer(follow, reply).await?;
                    self.asking.ask(&mut self.shown);
                }
                caught = signals.next() => match caught {
                    Caught::Interrupt if self.interrupted => {
                        self.shown.fresh_line();
                        return Ok(Some(Exit::CtrlC));
                    }
                    Caught::Interrupt => self.interrupt(follow).await?,
                    Caught::Terminate | Caught::HangUp => return Ok(Some(caught.exit())),
                },
            }
        }
    }

    fn take(&mut self, news: &News) -> Result<Progress, Failure> {
        match news {
            News::Frame(frame) => self.frame(frame),
            News::Lost(what) => {
                self.shown.fresh_line();
                let line_end = if self.asking.asks() { "\n" } else { "" };
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
        if self.json {
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
        self.asking.caught_up(&snapshot.approvals);
        let ours = self.turn.is_some() && self.turn.as_ref() == snapshot.turn.as_ref().map(|turn| &turn.turn);
        if ours {
            for item in &snapshot.open {
                self.shown.open(item)?;
            }
        } else if snapshot.held && snapshot.queue.iter().any(|queued| queued.input_id == self.input) {
            self.tell_held();
        }
        Ok(())
    }

    /// An interrupt of the turn before holds what waits behind it, which is ours.
    fn tell_held(&mut self) {
        let session = short(self.session.id.as_str());
        self.output.tell(&format!(
            "the queue of this session is held since an interrupt\nhint: `agentctl queue resume {session}` lets it go on"
        ));
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
                self.asking.stop();
                return Ok(Progress::Over);
            }
            Event::TodoChanged(todo) if self.turn.is_some() => self.shown.todo(&todo.items),
            Event::TurnCompleted(completed)
                if self.turn.is_none() && self.history == History::Live && completed.holds_the_queue() =>
            {
                self.tell_held();
            }
            Event::NoticeAdded(notice) if self.notices.insert(notice.text.clone()) => {
                self.shown.fresh_line();
                self.output.tell(&format!("note: {}", wording::told(&notice.text)));
            }
            Event::ApprovalRequested(asked) => self.asking.requested(asked, envelope.at, &self.session),
            Event::ApprovalResolved(resolved) => {
                self.asking.resolved(&resolved);
                self.shown.changed(&resolved);
            }
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

    /// The first Ctrl-C: ends the turn, or takes the input out of the queue.
    async fn interrupt(&mut self, follow: &mut Follow) -> Result<(), Failure> {
        self.interrupted = true;
        self.asking.stop();
        self.shown.fresh_line();
        self.output
            .tell(&self.output.dim("interrupting; Ctrl-C again leaves at once"));
        let session = self.session.id.0.clone();
        let result = match self.turn.clone().or(self.begun.clone()) {
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
        self.asking.stop();
        let session = &self.session.id;
        if self.json {
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
        if !self.json && !self.shown.streams() {
            result::print_text(&self.output, turn)?;
        }
        if exit == Exit::CtrlC {
            self.output.tell("interrupted");
        } else {
            result::tell(&self.output, turn);
        }
        if self.json {
            self.output.json(&result::line(turn, Some(&self.input), exit))?;
        }
        Ok(exit)
    }
}
