//! `model.*`: which models there are, and what a person says of one that was found.

use super::client::Client;
use super::{Api, AskServers};
use protocol::RpcError;
use protocol::method::{Access, Empty, ModelConfirmParams, ModelListAnswer, ModelListParams};
use std::sync::Arc;

pub(super) async fn list(
    api: Arc<Api>,
    client: Arc<Client>,
    params: ModelListParams,
) -> Result<ModelListAnswer, RpcError> {
    if params.available {
        // Keys are used for it, and a key command may ask a person.
        client.allow(Access::Act)?;
    }
    let ask = if params.available {
        AskServers::Yes
    } else {
        AskServers::No
    };
    Ok(api.keys.list(ask).await)
}

pub(super) async fn confirm(api: Arc<Api>, _: Arc<Client>, params: ModelConfirmParams) -> Result<Empty, RpcError> {
    api.keys.look_around().await;
    api.keys.confirm(&params)?;
    Ok(Empty {})
}
