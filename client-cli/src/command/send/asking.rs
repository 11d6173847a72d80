//! The approvals of a session while somebody waits for its answer: asked on the terminal one after the other, or named on stderr
//! where nobody can be asked, and taken back when another client answers first.

use super::shown::{Shown, cut};
use crate::ask::{Question, Reply, Tty, reply};
use crate::failure::Failure;
use crate::follow::Follow;
use crate::output::Output;
use protocol::event::{ApprovalRequested, ApprovalResolved, Resolution};
use protocol::frame::{ApprovalView, Asker};
use protocol::method::{AnswerParams, ApprovalAnswer, SessionInfo};
use protocol::{ApprovalId, ErrorKind, Time, short, wording};
use std::collections::HashSet;

/// Characters of a question in one line; all of it is in `agentctl approvals`.
const QUESTION: usize = 400;

/// What waits and what was done about it.
pub(super) struct Asking {
    output: Output,
    tty: Option<Tty>,
    /// The oldest first.
    waiting: Vec<ApprovalView>,
    question: Option<Question>,
    /// Told or asked once.
    told: HashSet<ApprovalId>,
    /// Answered from here: who answered is no news.
    answered: HashSet<ApprovalId>,
}

impl Asking {
    pub(super) fn new(output: Output, tty: Option<Tty>) -> Self {
        Self {
            output,
            tty,
            waiting: Vec::new(),
            question: None,
            told: HashSet::new(),
            answered: HashSet::new(),
        }
    }

    /// Whether a question is on the screen.
    pub(super) fn asks(&self) -> bool {
        self.question.is_some()
    }

    /// Takes the question from the screen and puts the terminal back.
    pub(super) fn stop(&mut self) {
        if self.question.take().is_some() {
            self.output.whisper("\n");
        }
    }

    pub(super) fn requested(&mut self, asked: ApprovalRequested, at: Time, session: &SessionInfo) {
        let asker = Asker {
            session: session.id.clone(),
            session_name: session.name.clone(),
            cwd: session.cwd.clone(),
        };
        self.waiting.push(ApprovalView::new(asked, asker, at));
    }

    /// Settled, by whomever.
    pub(super) fn resolved(&mut self, resolved: &ApprovalResolved) {
        let is_this = |view: &ApprovalView| view.id == resolved.approval;
        self.waiting.retain(|view| !is_this(view));
        if self.question.as_ref().is_some_and(|question| is_this(&question.view)) {
            self.stop();
        }
        // What expired is told with the result.
        let news = resolved.decision != Resolution::Expired
            && self.told.contains(&resolved.approval)
            && !self.answered.contains(&resolved.approval);
        if news {
            let line = wording::resolution_line(resolved.decision, &resolved.by, resolved.feedback.as_deref());
            self.output.tell(&line);
        }
    }

    /// All that waits, as a snapshot has it.
    pub(super) fn caught_up(&mut self, waiting: &[ApprovalView]) {
        self.waiting = waiting.to_vec();
        let gone = |question: &Question| !waiting.iter().any(|view| view.id == question.view.id);
        if self.question.as_ref().is_some_and(gone) {
            self.stop();
        }
        if let Some(question) = &self.question {
            question.again();
        }
    }

    /// Puts the oldest question, or says that one waits where nobody can be asked here.
    pub(super) fn ask(&mut self, shown: &mut Shown) {
        while self.question.is_none() {
            let Some(view) = self.waiting.iter().find(|view| !self.told.contains(&view.id)) else {
                return;
            };
            shown.fresh_line();
            self.told.insert(view.id.clone());
            let tty = self.tty.as_ref();
            self.question = tty.and_then(|tty| Question::put(view.clone(), tty, self.output));
            if self.question.is_none() {
                self.tell(view);
            }
        }
    }

    fn tell(&self, view: &ApprovalView) {
        let line = cut(&wording::approval_line(view), QUESTION);
        let id = short(view.id.as_str());
        let hint = format!("hint: `agentctl approve {id}` or `agentctl deny {id}`");
        self.output.tell(&format!("waits for approval {id}: {line}\n{hint}"));
    }

    /// The answer to the question, if one is put. Cancel-safe.
    pub(super) async fn reply(&mut self) -> Option<Reply> {
        reply(&mut self.question).await
    }

    /// Sends the answer. `None`: the terminal is gone, so nobody can be asked here any more.
    pub(super) async fn answer(&mut self, follow: &mut Follow, reply: Option<Reply>) -> Result<(), Failure> {
        let Some(question) = self.question.take() else {
            return Ok(());
        };
        let Some(reply) = reply else {
            self.tty = None;
            return Ok(());
        };
        let params = AnswerParams {
            id: question.view.id.clone(),
            digest: question.view.digest.clone(),
            decision: reply.decision,
            feedback: reply.feedback,
            arguments: None,
        };
        drop(question);
        match follow.call::<ApprovalAnswer>(&params).await {
            Ok(_) => {
                self.answered.insert(params.id);
                Ok(())
            }
            // Its event says who was first.
            Err(Failure::Client(error)) if error.kind() == Some(ErrorKind::AlreadyResolved) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
