//! `job.*`: commands in the background, for people.

use super::Api;
use super::client::Client;
use crate::session::Message;
use protocol::RpcError;
use protocol::method::{Empty, JobInfo, JobKillParams, JobListParams};
use std::sync::Arc;

/// Only sessions that live have any: a job keeps its session in memory.
pub(super) async fn list(api: Arc<Api>, _: Arc<Client>, params: JobListParams) -> Result<Vec<JobInfo>, RpcError> {
    let only = match &params.session {
        Some(session) => Some(api.session_id(session).await?),
        None => None,
    };
    let mut jobs = Vec::new();
    for handle in api.registry.living() {
        let snapshot = Arc::clone(&handle.live().borrow().snapshot);
        if only.as_ref().is_some_and(|only| *only != snapshot.session) {
            continue;
        }
        jobs.extend(snapshot.jobs.iter().map(|job| JobInfo {
            job: job.job.clone(),
            session: snapshot.session.clone(),
            name: snapshot.name.clone(),
            call: job.call.clone(),
            command: job.command.clone(),
            started_at: job.started_at,
        }));
    }
    jobs.sort_by_key(|job| job.started_at);
    Ok(jobs)
}

pub(super) async fn kill(api: Arc<Api>, client: Arc<Client>, params: JobKillParams) -> Result<Empty, RpcError> {
    let session = api.session_id(&params.session).await?;
    let by = client.by();
    api.registry
        .ask(&session, |reply| {
            Message::KillJob(params.job.clone(), by.clone(), reply)
        })
        .await?;
    Ok(Empty {})
}
