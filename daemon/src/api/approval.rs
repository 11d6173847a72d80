//! `approval.*`: the inbox over all sessions.

use super::Api;
use super::client::Client;
use crate::log::{ApprovalFilter, ApprovalRow, Settled};
use crate::policy::grant_for;
use crate::session::{AnswerRequest, Edited, Message, grant_of, inspect_edit, storage};
use protocol::event::{ApprovalRequested, ApprovalResolved, Choice, Resolution};
use protocol::frame::{ApprovalView, Asker};
use protocol::method::{AnswerParams, Answered, ApprovalListParams};
use protocol::{By, ErrorKind, Event, RpcError, Seq, SessionId, Time};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

pub(super) async fn list(
    api: Arc<Api>,
    _: Arc<Client>,
    params: ApprovalListParams,
) -> Result<Vec<ApprovalView>, RpcError> {
    let below = match params.session {
        Some(text) => Some(api.find(&text, None).await?.key),
        None => None,
    };
    let log = &api.registry.deps().log;
    let filter = ApprovalFilter {
        below,
        settled: if params.settled {
            Settled::Only
        } else {
            Settled::Without
        },
        ..ApprovalFilter::default()
    };
    let rows = log.list_approvals(filter).await.map_err(|error| storage(&error))?;
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(session) = log.session_by_key(row.session).await.map_err(|error| storage(&error))? else {
            continue;
        };
        views.extend(view(row, session.name.or(session.title), session.cwd));
    }
    Ok(views)
}

fn view(row: ApprovalRow, session_name: Option<String>, cwd: String) -> Option<ApprovalView> {
    let request: ApprovalRequested = serde_json::from_str(&row.requested.body).ok()?;
    let asker = Asker {
        session: SessionId(row.session_id),
        session_name,
        cwd,
    };
    Some(ApprovalView::new(request, asker, Time(row.requested.at_ms)))
}

pub(super) async fn answer(api: Arc<Api>, client: Arc<Client>, params: AnswerParams) -> Result<Answered, RpcError> {
    let redactor = &api.registry.deps().redactor;
    let params = AnswerParams {
        feedback: params.feedback.map(|feedback| redactor.clean_text(feedback)),
        ..params
    };
    let row = api
        .registry
        .deps()
        .log
        .approval(&params.id.0)
        .await
        .map_err(|error| storage(&error))?;
    let row = row.ok_or_else(|| {
        RpcError::new(
            ErrorKind::ApprovalNotFound,
            format!("there is no approval {}", params.id),
        )
        .hint("agentctl approvals lists those that wait")
    })?;
    let by = client.by();
    if let Some(pos) = row.resolved_pos {
        return settled(&api, &row, pos, &params, &by).await;
    }
    let session = SessionId(row.session_id.clone());
    let edited = match &params.arguments {
        Some(arguments) => Some(changed(&api, &session, &params, arguments.clone()).await?),
        None => None,
    };
    let message = |reply| {
        let request = AnswerRequest {
            id: params.id.clone(),
            digest: params.digest.clone(),
            decision: params.decision,
            feedback: params.feedback.clone(),
            edited: edited.clone(),
            by: by.clone(),
        };
        Message::Answer(Box::new(request), reply)
    };
    let answered = match api.registry.ask(&session, message).await {
        Err(error) if error.kind == ErrorKind::AlreadyResolved => {
            let row = api
                .registry
                .deps()
                .log
                .approval(&params.id.0)
                .await
                .map_err(|error| storage(&error))?;
            match row.and_then(|row| row.resolved_pos.map(|pos| (row, pos))) {
                Some((row, pos)) => settled(&api, &row, pos, &params, &by).await,
                None => Err(error),
            }
        }
        answered => answered,
    }?;
    if answered.decision == Resolution::Always {
        keep_rule(&api, &row, edited.as_ref()).await?;
    }
    Ok(answered)
}

/// The call as the person changed it, looked at before anybody decides.
async fn changed(api: &Api, session: &SessionId, params: &AnswerParams, arguments: Value) -> Result<Edited, RpcError> {
    if params.decision == Choice::Deny {
        return Err(RpcError::new(
            ErrorKind::InvalidParams,
            "`arguments` belong to an answer that allows",
        ));
    }
    let asked = api
        .registry
        .ask(session, |reply| Message::Look(params.id.clone(), reply))
        .await?;
    inspect_edit(&asked, arguments).await.map_err(|error| {
        RpcError::new(
            ErrorKind::InvalidParams,
            format!("the changed arguments are wrong: {error}"),
        )
    })
}

/// Writes the rule that "always" has shown, or that of the changed call, into the user's own file. The answer is recorded before, so
/// that a crash in between costs the rule and never the record of who allowed it.
async fn keep_rule(api: &Api, row: &ApprovalRow, edited: Option<&Edited>) -> Result<(), RpcError> {
    let deps = api.registry.deps();
    let request: Option<ApprovalRequested> = serde_json::from_str(&row.requested.body).ok();
    let grant = match edited {
        Some(edited) => grant_for(&edited.inspected.facts),
        None => request.as_ref().and_then(grant_of),
    };
    let session = deps
        .log
        .session_by_key(row.session)
        .await
        .map_err(|error| storage(&error))?;
    let (Some(grant), Some(session)) = (grant, session) else {
        return Ok(());
    };
    let Some(rule) = grant.to_rule(Path::new(&session.root_path)) else {
        return Ok(());
    };
    deps.rules.add(&rule).map(drop).map_err(|error| {
        RpcError::new(
            ErrorKind::InvalidConfig,
            format!("it is allowed for this session, but the rule is not written: {error}"),
        )
    })
}

/// The answer to a late answer: the recorded success if it is the very same again, else who was first.
async fn settled(api: &Api, row: &ApprovalRow, pos: u64, params: &AnswerParams, by: &By) -> Result<Answered, RpcError> {
    let rows = api
        .registry
        .deps()
        .log
        .after_pos(pos - 1, 1, &["approval.resolved"])
        .await
        .map_err(|error| storage(&error))?;
    let resolved = rows
        .into_iter()
        .next()
        .and_then(|(_, _, row)| match Event::parse(&row.kind, &row.body) {
            Ok(Some(Event::ApprovalResolved(resolved))) if resolved.approval == params.id => {
                Some((row.seq, row.at_ms, resolved))
            }
            _ => None,
        });
    let Some((
        seq,
        at_ms,
        ApprovalResolved {
            decision,
            by: first,
            feedback,
            ..
        },
    )) = resolved
    else {
        return Err(RpcError::new(
            ErrorKind::AlreadyResolved,
            "the approval is settled already",
        ));
    };
    if first == *by && decision == params.decision.into() && feedback == params.feedback {
        let session = SessionId(row.session_id.clone());
        return Ok(Answered {
            id: params.id.clone(),
            session,
            decision,
            seq: Seq(seq),
        });
    }
    Err(RpcError::new(
        ErrorKind::AlreadyResolved,
        format!("the approval was settled already, by {first}"),
    )
    .with("by", first)
    .with("decision", decision)
    .with("at", Time(at_ms)))
}
