//! `session.watch` and `approval.watch`: cursors over all sessions, by `pos`.

use super::Api;
use super::client::Client;
use crate::log::{LogError, PAGE_ROWS};
use crate::session::Answers;
use jsonrpsee::core::server::{PendingSubscriptionSink, SubscriptionSink};
use protocol::frame::{WatchedEnvelope, WatchedEvent};
use protocol::method::WatchParams;
use protocol::{Pos, Seq, SessionId, Time};
use std::sync::Arc;
use std::time::Duration;

/// Pause before the log is read again after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What `session.watch` shows.
const SESSION_KINDS: [&str; 4] = ["session.created", "session.changed", "turn.started", "turn.completed"];

/// What `approval.watch` shows.
const APPROVAL_KINDS: [&str; 2] = ["approval.requested", "approval.resolved"];

pub(super) async fn sessions(api: Arc<Api>, _: Arc<Client>, params: WatchParams, pending: PendingSubscriptionSink) {
    if let Ok(sink) = pending.accept().await {
        follow(&api, params, &sink, &SESSION_KINDS).await;
    }
}

/// Whoever follows approvals and says that it answers, answers for all sessions.
pub(super) async fn approvals(
    api: Arc<Api>,
    client: Arc<Client>,
    params: WatchParams,
    pending: PendingSubscriptionSink,
) {
    let Ok(sink) = pending.accept().await else { return };
    let answers = if client.introduced().answers {
        Answers::Yes
    } else {
        Answers::No
    };
    let _present = api.answerers.join(client.view(), answers);
    follow(&api, params, &sink, &APPROVAL_KINDS).await;
}

async fn follow(api: &Api, params: WatchParams, sink: &SubscriptionSink, kinds: &[&str]) {
    let log = &api.registry.deps().log;
    let mut committed = log.committed_pos();
    let mut cursor = params.after_pos.map_or_else(|| log.head_pos(), |pos| pos.0);
    loop {
        let head = *committed.borrow_and_update();
        let rows = match log.after_pos(cursor, PAGE_ROWS, kinds).await {
            Ok(rows) => rows,
            // A watch has no frame that says why it ended, and nothing is lost by trying again.
            Err(LogError::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "a watch cannot read the log and tries again");
                tokio::select! {
                    () = sink.closed() => return,
                    () = tokio::time::sleep(RETRY_PAUSE) => continue,
                }
            }
        };
        let more = !rows.is_empty();
        for (_, session, row) in rows {
            cursor = row.pos;
            let Ok(data) = serde_json::from_str(&row.body) else {
                continue;
            };
            let event = WatchedEnvelope {
                seq: Seq(row.seq),
                pos: Pos(row.pos),
                at: Time(row.at_ms),
                kind: row.kind,
                data,
            };
            let Ok(json) = serde_json::value::to_raw_value(&WatchedEvent {
                session: SessionId(session),
                event,
            }) else {
                continue;
            };
            if sink.send(json).await.is_err() {
                return;
            }
        }
        if more {
            continue;
        }
        cursor = cursor.max(head);
        tokio::select! {
            () = sink.closed() => return,
            changed = committed.changed() => if changed.is_err() { return },
        }
    }
}
