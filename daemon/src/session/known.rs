//! Inputs that were accepted before: what was answered then, read back from the log.

use super::actor::{fault, storage};
use super::state::State;
use crate::log::{EventLog, LogError, SessionKey};
use protocol::event::{Disposition, Event, InputAccepted};
use protocol::method::Sent;
use protocol::{InputId, RpcError, Seq, TurnId};

/// Events read at once in search of the delivery.
const PAGE: usize = 200;

/// What was accepted under `input_id`, and the answer it got; none if it is new.
pub(super) async fn known(
    log: &EventLog,
    session: SessionKey,
    state: &State,
    input_id: &InputId,
) -> Result<Option<(InputAccepted, Sent)>, RpcError> {
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
    Ok(Some((accepted, sent)))
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
