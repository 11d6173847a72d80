//! `approval.*`: the inbox over all sessions.

use super::Api;
use super::client::Client;
use crate::log::{ApprovalFilter, ApprovalRow};
use crate::session::{AnswerRequest, Message, storage};
use protocol::event::{ApprovalRequested, ApprovalResolved};
use protocol::frame::ApprovalView;
use protocol::method::{AnswerParams, Answered, ApprovalListParams};
use protocol::{By, ErrorKind, Event, RpcError, Seq, SessionId, Time};
use std::sync::Arc;

pub(super) async fn list(api: Arc<Api>, _: Arc<Client>, params: ApprovalListParams) -> Result<Vec<ApprovalView>, RpcError> {
    let below = match params.session {
        Some(text) => Some(api.find(&text, None).await?.key),
        None => None,
    };
    let log = &api.registry.deps().log;
    let filter = ApprovalFilter { below, ..ApprovalFilter::default() };
    let rows = log.list_approvals(filter).await.map_err(|error| storage(&error))?;
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(session) = log.session_by_key(row.session).await.map_err(|error| storage(&error))? else { continue };
        views.extend(view(row, session.name.or(session.title), session.cwd));
    }
    Ok(views)
}

fn view(row: ApprovalRow, session_name: Option<String>, cwd: String) -> Option<ApprovalView> {
    let request: ApprovalRequested = serde_json::from_str(&row.requested.body).ok()?;
    Some(ApprovalView {
        id: request.approval,
        session: SessionId(row.session_id),
        session_name,
        turn: request.turn,
        call: request.call,
        tool: request.tool,
        digest: request.digest,
        action: request.action,
        reason: request.reason,
        choices: request.choices,
        rule: request.rule,
        requested_at: Time(row.requested.at_ms),
        cwd,
    })
}

pub(super) async fn answer(api: Arc<Api>, client: Arc<Client>, params: AnswerParams) -> Result<Answered, RpcError> {
    let row = api.registry.deps().log.approval(&params.id.0).await.map_err(|error| storage(&error))?;
    let row = row.ok_or_else(|| {
        RpcError::new(ErrorKind::ApprovalNotFound, format!("there is no approval {}", params.id))
            .hint("agentctl approvals lists those that wait")
    })?;
    let by = client.by();
    if let Some(pos) = row.resolved_pos {
        return settled(&api, &row, pos, &params, &by).await;
    }
    let session = SessionId(row.session_id.clone());
    let message = |reply| {
        let request = AnswerRequest {
            id: params.id.clone(),
            digest: params.digest.clone(),
            decision: params.decision,
            feedback: params.feedback.clone(),
            by: by.clone(),
        };
        Message::Answer(Box::new(request), reply)
    };
    match api.registry.ask(&session, message).await {
        Err(error) if error.kind == ErrorKind::AlreadyResolved => {
            let row = api.registry.deps().log.approval(&params.id.0).await.map_err(|error| storage(&error))?;
            match row.and_then(|row| row.resolved_pos.map(|pos| (row, pos))) {
                Some((row, pos)) => settled(&api, &row, pos, &params, &by).await,
                None => Err(error),
            }
        }
        answered => answered,
    }
}

/// The answer to a late answer: the recorded success if it is the very same again, else who was first.
async fn settled(api: &Api, row: &ApprovalRow, pos: u64, params: &AnswerParams, by: &By) -> Result<Answered, RpcError> {
    let rows = api.registry.deps().log.after_pos(pos - 1, 1, &["approval.resolved"]).await.map_err(|error| storage(&error))?;
    let resolved = rows.into_iter().next().and_then(|(_, _, row)| match Event::parse(&row.kind, &row.body) {
        Ok(Some(Event::ApprovalResolved(resolved))) => Some((row.seq, row.at_ms, resolved)),
        _ => None,
    });
    let Some((seq, at_ms, ApprovalResolved { decision, by: first, feedback, .. })) = resolved else {
        return Err(RpcError::new(ErrorKind::AlreadyResolved, "the approval is settled already"));
    };
    if first == *by && decision == params.decision.into() && feedback == params.feedback {
        let session = SessionId(row.session_id.clone());
        return Ok(Answered { id: params.id.clone(), session, decision, seq: Seq(seq) });
    }
    Err(RpcError::new(ErrorKind::AlreadyResolved, format!("the approval was settled already, by {first}"))
        .with("by", first)
        .with("decision", decision)
        .with("at", Time(at_ms)))
}
