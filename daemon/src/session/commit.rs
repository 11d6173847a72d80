//! From a decision to committed events: the rows of one transaction, and what they become once they are durable.

use super::decide::Draft;
use super::state::{STATE_VERSION, State};
use crate::log::{Append, Appended, ApprovalChange, Columns, NewRow, SavedState, SessionKey};
use protocol::event::{Envelope, Event};
use protocol::{Pos, Seq, Time};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The phase in the list of sessions of one that is idle but has commands in the background: it counts as unfinished, so that
/// the next life of the daemon records what became of them.
pub(crate) const BACKGROUND: &str = "background";

/// The append of `drafts`, decided at `at` after `state`, with `after` as the state they lead to.
pub(crate) fn append(
    key: SessionKey,
    state: &State,
    after: &State,
    drafts: &[Draft],
    at: Time,
) -> serde_json::Result<Append> {
    let mut rows = Vec::with_capacity(drafts.len());
    let mut approvals = Vec::new();
    for (row, draft) in drafts.iter().enumerate() {
        match &draft.event {
            Event::ApprovalRequested(request) => {
                approvals.push(ApprovalChange::Requested {
                    id: request.approval.0.clone(),
                    row,
                });
            }
            Event::ApprovalResolved(resolved) => {
                approvals.push(ApprovalChange::Resolved {
                    id: resolved.approval.0.clone(),
                    row,
                });
            }
            _ => {}
        }
        rows.push(NewRow {
            kind: draft.event.kind(),
            at_ms: at.0,
            body: draft.event.body()?,
            private: draft.private.as_ref().map(serde_json::to_vec).transpose()?,
        });
    }
    Ok(Append {
        session: key,
        expected_seq: state.seq.next().0,
        rows,
        columns: columns(state, after)?,
        approvals,
    })
}

fn columns(state: &State, after: &State) -> serde_json::Result<Columns> {
    let changed = |before: &Option<String>, now: &Option<String>| (before != now).then(|| now.clone()).flatten();
    let turn_ended =
        state.turn.is_some() && after.turn.as_ref().map(|turn| &turn.id) != state.turn.as_ref().map(|turn| &turn.id);
    let saved = |after: &State| {
        serde_json::to_vec(after).map(|bytes| SavedState {
            bytes,
            seq: after.seq.0,
            version: STATE_VERSION,
        })
    };
    Ok(Columns {
        phase: Some(if after.turn.is_none() && !after.jobs.is_empty() {
            BACKGROUND
        } else {
            after.phase().as_str()
        }),
        queued: u32::try_from(after.queue.len() + after.steers.len()).ok(),
        name: changed(&state.name, &after.name),
        title: changed(&state.title, &after.title),
        model: changed(&state.settings.model, &after.settings.model),
        mode: Some(word(&after.settings.mode)?),
        outcome: after.outcome.as_ref().map(word).transpose()?,
        cwd: None,
        archived: (state.archived != after.archived).then_some(after.archived),
        added_roots: (state.added_roots != after.added_roots)
            .then(|| serde_json::to_string(&after.added_roots))
            .transpose()?,
        state: turn_ended.then(|| saved(after)).transpose()?,
    })
}

/// The name a plain enum has on the wire.
pub(crate) fn word<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    serde_json::to_value(value).map(|value| value.as_str().unwrap_or_default().to_owned())
}

/// The rows as they were committed, the first of them at `first`.
pub(crate) fn envelopes(first: Seq, appended: Appended) -> Vec<Arc<Envelope>> {
    let numbered = appended.rows.into_iter().zip(first.0..).zip(appended.first_pos..);
    let envelope = |((row, seq), pos): ((NewRow, u64), u64)| {
        let data = RawValue::from_string(row.body).ok()?;
        let kind = row.kind.to_owned();
        Some(Arc::new(Envelope {
            seq: Seq(seq),
            pos: Pos(pos),
            at: Time(row.at_ms),
            kind,
            data,
        }))
    };
    numbered.filter_map(envelope).collect()
}

/// A stored row as clients get it.
pub(crate) fn envelope(row: crate::log::Row) -> Option<Envelope> {
    let data = RawValue::from_string(row.body).ok()?;
    Some(Envelope {
        seq: Seq(row.seq),
        pos: Pos(row.pos),
        at: Time(row.at_ms),
        kind: row.kind,
        data,
    })
}
