//! `tool.*`: what models can do here.

use super::Api;
use super::client::Client;
use protocol::RpcError;
use protocol::method::{Empty, ToolInfo};
use std::sync::Arc;

pub(super) async fn list(api: Arc<Api>, _: Arc<Client>, _: Empty) -> Result<Vec<ToolInfo>, RpcError> {
    Ok(api.desk.tools())
}
