//! `agentctl approvals --follow`: the inbox as it changes. On a terminal each is asked in its turn, so that whoever keeps this open
//! answers for all sessions.

use super::{heading, text};
use crate::ask::{Question, Reply, Tty, reply};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{LOOK_EVERY, LOOK_FOR, passing};
use crate::invocation::{Answers, Invocation, connect};
use crate::output::{Output, Reader};
use crate::signals::Signals;
use protocol::client::{Autostart, Client, ClientError, Connect, Frames};
use protocol::event::ApprovalResolved;
use protocol::frame::{ApprovalView, WatchedEvent};
use protocol::method::{AnswerParams, ApprovalAnswer, ApprovalList, ApprovalListParams, ApprovalWatch, WatchParams};
use protocol::{ApprovalId, ErrorKind, wording};
use std::collections::HashSet;
use std::time::Instant;

/// What was printed and what is asked.
struct Inbox {
    output: Output,
    json: bool,
    tty: Option<Tty>,
    waiting: Vec<ApprovalView>,
    shown: HashSet<ApprovalId>,
    question: Option<Question>,
}

/// The connection that says that something changed, and the one that asks what waits.
struct Connections {
    events: Frames<WatchedEvent>,
    client: Client,
}

pub(super) async fn run(invocation: &Invocation, json: bool, params: ApprovalListParams) -> Result<Exit, Failure> {
    let output = invocation.output;
    let tty = (!json && output.stderr == Reader::Terminal).then(Tty::open).flatten();
    let answers = if tty.is_some() { Answers::Yes } else { Answers::No };
    let connect = connect(answers, Autostart::Yes);
    let mut inbox = Inbox {
        output,
        json,
        tty,
        waiting: Vec::new(),
        shown: HashSet::new(),
        question: None,
    };
    let mut signals = Signals::new()?;
    let mut give_up_at = Instant::now();
    loop {
        let lost = match open(&connect).await {
            Ok(mut connections) => {
                let attention = connections.client.hello().attention;
                inbox.tty.iter().for_each(|tty| tty.attend(attention));
                let caught = tokio::select! {
                    result = inbox.follow(&mut connections, &params) => Err(result),
                    caught = signals.next() => Ok(caught),
                };
                give_up_at = Instant::now() + LOOK_FOR;
                match caught {
                    Ok(caught) => {
                        if inbox.question.take().is_some() {
                            output.whisper("\n");
                        }
                        return Ok(caught.exit());
                    }
                    Err(result) => result,
                }
            }
            Err(error) => Err(error.into()),
        };
        match lost {
            Err(Failure::Client(error)) if passing(&error) && Instant::now() < give_up_at => {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            result => return result.map(|()| Exit::Completed),
        }
    }
}

/// The watch begins before the first list, so that nothing falls between the two.
async fn open(connect: &Connect) -> Result<Connections, ClientError> {
    let watcher = Client::connect(connect).await?;
    let events = watcher.subscribe::<ApprovalWatch>(&WatchParams::default()).await?;
    let client = Client::connect(connect).await?;
    Ok(Connections { events, client })
}

impl Inbox {
    async fn follow(&mut self, connections: &mut Connections, params: &ApprovalListParams) -> Result<(), Failure> {
        loop {
            self.waiting = connections.client.call::<ApprovalList>(params).await?;
            self.show()?;
            tokio::select! {
                event = connections.events.next() => match event {
                    Some(event) => self.settled(&event?),
                    None => return Ok(()),
                },
                reply = reply(&mut self.question) => self.answer(&mut connections.client, reply).await?,
            }
        }
    }

    /// Prints what is new; on a terminal one is asked after the other.
    fn show(&mut self) -> Result<(), Failure> {
        let gone = |question: &Question| !self.waiting.iter().any(|view| view.id == question.view.id);
        if self.question.as_ref().is_some_and(gone) {
            self.question = None;
        }
        while self.question.is_none() {
            let Some(view) = self.waiting.iter().find(|view| !self.shown.contains(&view.id)) else {
                break;
            };
            self.shown.insert(view.id.clone());
            match &self.tty {
                Some(tty) => {
                    self.output.tell_always(&heading(view));
                    self.question = Question::put(view.clone(), tty, self.output);
                }
                None if self.json => self.output.json(view)?,
                None => self.output.line(&text(view))?,
            }
        }
        Ok(())
    }

    /// Somebody else answered the one that is asked.
    fn settled(&mut self, event: &WatchedEvent) {
        let Ok(resolved) = serde_json::from_value::<ApprovalResolved>(event.event.data.clone()) else {
            return;
        };
        if self
            .question
            .as_ref()
            .is_some_and(|question| question.view.id == resolved.approval)
        {
            self.question = None;
            let line = wording::resolution_line(resolved.decision, &resolved.by, resolved.feedback.as_deref());
            self.output.tell_always(&format!("\n{line}"));
        }
    }

    async fn answer(&mut self, client: &mut Client, reply: Option<Reply>) -> Result<(), Failure> {
        let Some(question) = self.question.take() else {
            return Ok(());
        };
        let Some(reply) = reply else {
            return Err(Failure::error("the terminal is gone"));
        };
        let params = AnswerParams {
            id: question.view.id.clone(),
            digest: question.view.digest.clone(),
            decision: reply.decision,
            feedback: reply.feedback,
            arguments: None,
        };
        drop(question);
        match client.call::<ApprovalAnswer>(&params).await {
            Err(error) if error.kind() == Some(ErrorKind::AlreadyResolved) => {
                self.output.tell_always(&self.output.inline(&error.to_string()));
                Ok(())
            }
            result => Ok(result.map(drop)?),
        }
    }
}
