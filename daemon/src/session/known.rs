//! What the log knows of inputs that were accepted and of turns that began before: what was answered then, and how they ended.

use super::actor::{fault, storage};
use super::input::Send;
use super::state::State;
use crate::log::{EventLog, LogError, SessionKey};
use protocol::event::{Disposition, Event, InputAccepted, TurnOutcome};
use protocol::method::Sent;
use protocol::{ErrorKind, InputId, RpcError, Seq, Time, TurnId};

/// Events read at once in search of the delivery.
const PAGE: usize = 200;

/// An input that was accepted before.
pub(super) struct Known {
    accepted: InputAccepted,
    at: Time,
    /// The answer it got.
    pub(super) sent: Sent,
}

impl Known {
    /// Whether `send` is the same input again: what it says, how it is delivered and what it asks of its turn.
    pub(super) fn is(&self, send: &Send) -> bool {
        let InputAccepted {
            content,
            delivery,
            unattended,
            mode,
            mode_until,
            timeout_ms,
            interactive,
            ..
        } = &self.accepted;
        *content == send.content
            && *delivery == send.delivery
            && *unattended == send.unattended
            && *mode == send.mode
            && *mode_until == send.mode_until(self.at)
            && *timeout_ms == send.timeout_ms
            && *interactive == send.interactive
    }
}

/// What was accepted under `input_id`; none if it is new.
pub(super) async fn known(
    log: &EventLog,
    session: SessionKey,
    state: &State,
    input_id: &InputId,
) -> Result<Option<Known>, RpcError> {
    let Some(row) = log
        .find_input(session, &input_id.0)
        .await
        .map_err(|error| storage(&error))?
    else {
        return Ok(None);
    };
    let Ok(Some(Event::InputAccepted(accepted))) = Event::parse(&row.kind, &row.body) else {
        return Err(fault("an accepted input cannot be read"));
    };
    let turn = match accepted.disposition {
        Disposition::Queued if !accepted.urgent => None,
        Disposition::Steered if state.steers.iter().any(|waiting| waiting.input_id == *input_id) => {
            state.turn.as_ref().map(|turn| turn.id.clone())
        }
        Disposition::Started | Disposition::Steered | Disposition::Queued => delivered(log, session, row.seq, input_id)
            .await
            .map_err(|error| storage(&error))?,
    };
    let sent = Sent {
        input_id: input_id.clone(),
        seq: Seq(row.seq),
        disposition: accepted.disposition,
        turn,
    };
    let at = Time(row.at_ms);
    Ok(Some(Known { accepted, at, sent }))
}

/// Where the turn's `turn.started` stands.
///
/// # Errors
/// No such turn, and those of the log.
pub(crate) async fn begin_of(log: &EventLog, session: SessionKey, turn: &TurnId) -> Result<Seq, RpcError> {
    let missing = || RpcError::new(ErrorKind::TurnNotFound, format!("the session has no turn {turn}"));
    let seq = turn.seq().filter(|seq| seq.0 > 0).ok_or_else(missing)?;
    let found = log.read(session, seq.0 - 1, 1).await.map_err(|error| storage(&error))?;
    match found.first() {
        Some(row) if row.seq == seq.0 && row.kind == "turn.started" => Ok(seq),
        _ => Err(missing()),
    }
}

/// How the turn ended; none if it has not.
///
/// # Errors
/// No such turn, and those of the log.
pub(super) async fn outcome_of(
    log: &EventLog,
    session: SessionKey,
    turn: &TurnId,
) -> Result<Option<TurnOutcome>, RpcError> {
    let begin = begin_of(log, session, turn).await?;
    // Turns of a session follow one another, so the first end behind its beginning is its own.
    let row = log
        .first_of_kind(session, "turn.completed", begin.0)
        .await
        .map_err(|error| storage(&error))?;
    match row.map(|row| Event::parse(&row.kind, &row.body)) {
        None => Ok(None),
        Some(Ok(Some(Event::TurnCompleted(completed)))) if completed.turn == *turn => Ok(Some(completed.outcome)),
        Some(_) => Err(fault("the end of a turn cannot be read")),
    }
}

/// The turn that the input became part of.
async fn delivered(
    log: &EventLog,
    session: SessionKey,
    accepted: u64,
    input_id: &InputId,
) -> Result<Option<TurnId>, LogError> {
    let mut after = accepted;
    loop {
        let rows = log.read(session, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(None) };
        after = last.seq;
        for row in &rows {
            match Event::parse(&row.kind, &row.body) {
                Ok(Some(Event::InputDelivered(delivered))) if delivered.input_id == *input_id => {
                    return Ok(Some(delivered.turn));
                }
                _ => {}
            }
        }
    }
}
