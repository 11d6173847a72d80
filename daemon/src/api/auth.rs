//! `auth.*`: a person logs in at a provider, and out again. The flow runs in the daemon; a client shows what there is to do.

use super::Api;
use super::client::Client;
use crate::auth::login::LoginError;
use protocol::RpcError;
use protocol::method::{Empty, LoggedIn, LoggedOut, LoginParams, LoginRef, LoginStarted, LogoutParams};
use std::sync::Arc;

pub(super) async fn login(api: Arc<Api>, _: Arc<Client>, params: LoginParams) -> Result<LoginStarted, RpcError> {
    told(api.logins.begin(params).await)
}

pub(super) async fn wait(api: Arc<Api>, _: Arc<Client>, params: LoginRef) -> Result<LoggedIn, RpcError> {
    told(api.logins.wait(&params.login).await)
}

pub(super) async fn cancel(api: Arc<Api>, _: Arc<Client>, params: LoginRef) -> Result<Empty, RpcError> {
    told(api.logins.cancel(&params.login).map(|()| Empty {}))
}

pub(super) async fn logout(api: Arc<Api>, _: Arc<Client>, params: LogoutParams) -> Result<LoggedOut, RpcError> {
    told(api.logins.logout(params.profile.as_deref()).await)
}

fn told<T>(ended: Result<T, LoginError>) -> Result<T, RpcError> {
    ended.map_err(|error| error.told())
}
