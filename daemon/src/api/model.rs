//! `model.*`: which models there are.

use super::client::Client;
use super::{Api, AskServers};
use protocol::RpcError;
use protocol::method::{Access, ModelListAnswer, ModelListParams};
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
