//! `queue.*`: what waits in a session.

use super::Api;
use super::client::Client;
use crate::session::Message;
use protocol::RpcError;
use protocol::method::{Empty, Queue, QueueCancelParams, SessionParams};
use std::sync::Arc;

pub(super) async fn list(api: Arc<Api>, _: Arc<Client>, params: SessionParams) -> Result<Queue, RpcError> {
    let row = api.find(&params.session, None).await?;
    let snapshot = api.registry.look(&row).await?;
    Ok(Queue {
        inputs: snapshot.queue.clone(),
        held: snapshot.held,
    })
}

pub(super) async fn cancel(api: Arc<Api>, client: Arc<Client>, params: QueueCancelParams) -> Result<Empty, RpcError> {
    let session = api.session_id(&params.session).await?;
    let by = client.by();
    api.registry
        .ask(&session, |reply| {
            Message::CancelInput(params.input_id.clone(), by.clone(), reply)
        })
        .await?;
    Ok(Empty {})
}

pub(super) async fn resume(api: Arc<Api>, client: Arc<Client>, params: SessionParams) -> Result<Empty, RpcError> {
    let session = api.session_id(&params.session).await?;
    let by = client.by();
    api.registry
        .ask(&session, |reply| Message::ResumeQueue(by.clone(), reply))
        .await?;
    Ok(Empty {})
}
