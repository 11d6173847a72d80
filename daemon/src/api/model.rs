//! `model.*`: which models there are.

use super::client::Client;
use super::{Api, AskServers};
use protocol::RpcError;
use protocol::method::{ModelListAnswer, ModelListParams};
use std::sync::Arc;

pub(super) async fn list(api: Arc<Api>, _: Arc<Client>, params: ModelListParams) -> Result<ModelListAnswer, RpcError> {
    let ask = if params.available { AskServers::Yes } else { AskServers::No };
    Ok(api.keys.list(ask).await)
}
