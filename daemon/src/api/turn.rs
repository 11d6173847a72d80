//! `turn.*`: wait, interrupt, resume, list.

use super::Api;
use super::client::Client;
use crate::log::{PAGE_ROWS, SessionFilter, SessionKey};
use crate::session::{Message, begin_of, storage};
use protocol::event::{InputOutcome, ItemCompleted, ItemStatus, ItemType, TurnCompleted};
use protocol::method::{Empty, InterruptParams, Interrupted, RunningTurn, SessionParams, TurnResult, WaitParams};
use protocol::{By, ErrorKind, Event, InputId, RpcError, SessionId, TurnId, Usage};
use std::sync::Arc;

/// What somebody waits for.
enum Awaited {
    Input(InputId),
    Turn(TurnId),
}

pub(super) async fn wait(api: Arc<Api>, _: Arc<Client>, params: WaitParams) -> Result<TurnResult, RpcError> {
    let row = api.find(&params.session, None).await?;
    let session = SessionId(row.id);
    let (awaited, from) = match (params.input_id, params.turn) {
        (Some(input), None) => {
            let log = &api.registry.deps().log;
            let accepted = log
                .find_input(row.key, &input.0)
                .await
                .map_err(|error| storage(&error))?;
            let accepted = accepted
                .ok_or_else(|| RpcError::new(ErrorKind::InputNotFound, format!("the session has no input {input}")))?;
            (Awaited::Input(input), accepted.seq)
        }
        (None, Some(turn)) => {
            let seq = begin_of(&api.registry.deps().log, row.key, &turn).await?;
            (Awaited::Turn(turn), seq.0)
        }
        _ => {
            return Err(RpcError::new(
                ErrorKind::InvalidParams,
                "name exactly one of `input_id` and `turn`",
            ));
        }
    };
    Waiter {
        api,
        session,
        key: row.key,
        awaited,
        cursor: from,
        ending: Ending::default(),
    }
    .run()
    .await
}

/// Reads the log from the input on until its end is there.
struct Waiter {
    api: Arc<Api>,
    session: SessionId,
    key: SessionKey,
    awaited: Awaited,
    cursor: u64,
    ending: Ending,
}

/// What is known of the end so far.
#[derive(Default)]
struct Ending {
    settled: Option<(InputOutcome, Option<TurnId>)>,
    step: u32,
    text: String,
    by: Option<By>,
}

impl Waiter {
    async fn run(mut self) -> Result<TurnResult, RpcError> {
        loop {
            let handle = self.api.registry.open(&self.session).await?;
            let mut live = handle.live();
            loop {
                let head = live.borrow_and_update().head.0;
                while self.cursor <= head {
                    let rows = self
                        .api
                        .registry
                        .deps()
                        .log
                        .read(self.key, self.cursor - 1, PAGE_ROWS)
                        .await;
                    let rows = rows.map_err(|error| storage(&error))?;
                    if rows.is_empty() {
                        break;
                    }
                    for row in rows {
                        self.cursor = row.seq + 1;
                        let event = Event::parse(&row.kind, &row.body).ok().flatten();
                        if let Some(result) = event.and_then(|event| self.take(event)) {
                            return Ok(result);
                        }
                    }
                }
                if handle.changed(&mut live).await.is_err() {
                    break;
                }
            }
        }
    }

    fn take(&mut self, event: Event) -> Option<TurnResult> {
        match event {
            Event::StepStarted(started) => {
                self.ending.step = started.step;
                self.ending.text.clear();
            }
            Event::ItemCompleted(item) if self.is_answer(&item) => self.ending.text.push_str(&item.text),
            Event::TurnInterruptRequested(request) => self.ending.by = Some(request.by),
            Event::InputSettled(settled) => {
                if matches!(&self.awaited, Awaited::Input(input) if *input == settled.input_id) {
                    self.ending.by = settled.by.or(self.ending.by.take());
                    if settled.turn.is_none() {
                        return Some(self.result(settled.outcome, None, None));
                    }
                    self.ending.settled = Some((settled.outcome, settled.turn));
                } else if settled.by.is_some() {
                    self.ending.by = settled.by;
                }
            }
            Event::TurnCompleted(completed) => return self.turn_ended(completed),
            _ => {}
        }
        None
    }

    /// Whether an item is part of the text of the step that may end the turn.
    fn is_answer(&self, item: &ItemCompleted) -> bool {
        item.item_type == ItemType::Text && item.status == ItemStatus::Whole && item.step == self.ending.step
    }

    fn turn_ended(&mut self, completed: TurnCompleted) -> Option<TurnResult> {
        let ours = match (&self.awaited, &self.ending.settled) {
            (Awaited::Turn(turn), _) => *turn == completed.turn,
            (Awaited::Input(_), Some((_, turn))) => turn.as_ref() == Some(&completed.turn),
            (Awaited::Input(_), None) => false,
        };
        if !ours {
            self.ending.by = None;
            return None;
        }
        let status = self
            .ending
            .settled
            .as_ref()
            .map_or_else(|| completed.outcome.into(), |(outcome, _)| *outcome);
        Some(self.result(status, Some(completed.turn.clone()), Some(completed)))
    }

    fn result(&mut self, status: InputOutcome, turn: Option<TurnId>, completed: Option<TurnCompleted>) -> TurnResult {
        TurnResult {
            session: self.session.clone(),
            status,
            turn,
            text: std::mem::take(&mut self.ending.text),
            by: self.ending.by.take(),
            reason: completed.as_ref().and_then(|completed| completed.reason.clone()),
            usage: completed
                .as_ref()
                .map_or_else(Usage::default, |completed| completed.usage),
            cost: completed.as_ref().and_then(|completed| completed.cost),
            steps: completed.as_ref().map_or(0, |completed| completed.steps),
            demo: completed.as_ref().is_some_and(|completed| completed.demo),
            denied: completed.map(|completed| completed.denied).unwrap_or_default(),
        }
    }
}

pub(super) async fn interrupt(
    api: Arc<Api>,
    client: Arc<Client>,
    params: InterruptParams,
) -> Result<Interrupted, RpcError> {
    let session = api.session_id(&params.session).await?;
    let by = client.by();
    api.registry
        .ask(&session, |reply| {
            Message::Interrupt(params.turn.clone(), by.clone(), reply)
        })
        .await
}

pub(super) async fn resume(api: Arc<Api>, _: Arc<Client>, params: SessionParams) -> Result<Empty, RpcError> {
    let session = api.session_id(&params.session).await?;
    api.registry.ask(&session, Message::ResumeTurn).await?;
    Ok(Empty {})
}

pub(super) async fn list(api: Arc<Api>, _: Arc<Client>, _: Empty) -> Result<Vec<RunningTurn>, RpcError> {
    let filter = SessionFilter {
        unfinished: true,
        children: true,
        ephemeral: true,
        archived: true,
        ..SessionFilter::default()
    };
    let rows = api
        .registry
        .deps()
        .log
        .sessions(filter)
        .await
        .map_err(|error| storage(&error))?;
    let mut turns = Vec::new();
    for row in rows {
        let snapshot = match api.registry.look(&row).await {
            Ok(snapshot) => snapshot,
            // No turn of it can run, and the others are listed.
            Err(error) if error.kind == ErrorKind::SessionUnreadable => continue,
            Err(error) => return Err(error),
        };
        let Some(turn) = &snapshot.turn else { continue };
        turns.push(RunningTurn {
            session: snapshot.session.clone(),
            name: snapshot.name.clone(),
            title: snapshot.title.clone(),
            turn: turn.turn.clone(),
            phase: snapshot.phase,
            step: turn.step,
            started_at: turn.started_at,
        });
    }
    Ok(turns)
}
