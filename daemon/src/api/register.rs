//! The table of methods: which handler serves which.

use super::client::Client;
use super::{
    Api, approval, auth, blob, blocking, config, daemon, job, model, queue, rule, session, subscription, tool, trust,
    turn, usage, watch,
};
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::PendingSubscriptionSink;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, RpcModule};
use protocol::method::{self, Method, Subscription};
use protocol::{ErrorKind, RpcError};
use std::future::Future;
use std::sync::Arc;

/// Methods that are answered only after something else has happened: they do not hold up later requests.
pub(super) const WAITING: [&str; 5] = [
    method::TurnWait::NAME,
    method::ModelList::NAME,
    method::AuthLogin::NAME,
    method::AuthWait::NAME,
    method::AuthLogout::NAME,
];

/// All methods.
///
/// # Errors
/// When two have one name.
pub(crate) fn methods(api: Arc<Api>) -> Result<RpcModule<Api>, RegisterMethodError> {
    let mut module = RpcModule::from_arc(api);
    answer::<method::DaemonHello, _, _>(&mut module, daemon::hello)?;
    answer::<method::DaemonStatus, _, _>(&mut module, daemon::status)?;
    answer::<method::DaemonDoctor, _, _>(&mut module, daemon::doctor)?;
    answer::<method::DaemonStop, _, _>(&mut module, daemon::stop)?;
    answer::<method::SessionCreate, _, _>(&mut module, session::create)?;
    answer::<method::SessionList, _, _>(&mut module, session::list)?;
    answer::<method::SessionGet, _, _>(&mut module, session::get)?;
    answer::<method::SessionUpdate, _, _>(&mut module, session::update)?;
    answer::<method::SessionDelete, _, _>(&mut module, session::delete)?;
    answer::<method::SessionSend, _, _>(&mut module, session::send)?;
    answer::<method::TurnWait, _, _>(&mut module, turn::wait)?;
    answer::<method::TurnInterrupt, _, _>(&mut module, turn::interrupt)?;
    answer::<method::TurnResume, _, _>(&mut module, turn::resume)?;
    answer::<method::TurnList, _, _>(&mut module, turn::list)?;
    answer::<method::QueueList, _, _>(&mut module, queue::list)?;
    answer::<method::QueueCancel, _, _>(&mut module, queue::cancel)?;
    answer::<method::QueueResume, _, _>(&mut module, queue::resume)?;
    answer::<method::ApprovalList, _, _>(&mut module, approval::list)?;
    answer::<method::ApprovalAnswer, _, _>(&mut module, approval::answer)?;
    answer::<method::JobList, _, _>(&mut module, job::list)?;
    answer::<method::JobKill, _, _>(&mut module, job::kill)?;
    answer::<method::BlobGet, _, _>(&mut module, blob::get)?;
    answer::<method::ToolList, _, _>(&mut module, tool::list)?;
    answer::<method::SessionUsage, _, _>(&mut module, usage::usage)?;
    answer::<method::ModelList, _, _>(&mut module, model::list)?;
    answer::<method::ModelConfirm, _, _>(&mut module, model::confirm)?;
    from_files::<method::RuleList, _>(&mut module, rule::list)?;
    from_files::<method::RuleAdd, _>(&mut module, rule::add)?;
    from_files::<method::RuleRemove, _>(&mut module, rule::remove)?;
    answer::<method::RuleTest, _, _>(&mut module, rule::test)?;
    from_files::<method::ConfigGet, _>(&mut module, config::get)?;
    from_files::<method::ConfigSet, _>(&mut module, config::set)?;
    from_files::<method::TrustGet, _>(&mut module, trust::get)?;
    from_files::<method::TrustSet, _>(&mut module, trust::set)?;
    answer::<method::AuthLogin, _, _>(&mut module, auth::login)?;
    answer::<method::AuthWait, _, _>(&mut module, auth::wait)?;
    answer::<method::AuthCancel, _, _>(&mut module, auth::cancel)?;
    answer::<method::AuthLogout, _, _>(&mut module, auth::logout)?;
    subscribe::<method::SessionAttach, _, _>(&mut module, subscription::attach)?;
    subscribe::<method::SessionWatch, _, _>(&mut module, watch::sessions)?;
    subscribe::<method::ApprovalWatch, _, _>(&mut module, watch::approvals)?;
    Ok(module)
}

fn answer<M, F, R>(module: &mut RpcModule<Api>, handler: F) -> Result<(), RegisterMethodError>
where
    M: Method + 'static,
    F: Fn(Arc<Api>, Arc<Client>, M::Params) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<M::Answer, RpcError>> + Send,
{
    module.register_async_method(M::NAME, move |params, api, extensions| {
        let handler = handler.clone();
        async move {
            let client = client(&extensions)?;
            client.allow(M::ACCESS)?;
            let params = parse::<M::Params>(&params, M::NAME)?;
            handler(api, client, params).await.map_err(ErrorObjectOwned::from)
        }
    })?;
    Ok(())
}

/// A handler that reads and writes files, and so runs off the runtime's threads.
fn from_files<M, F>(module: &mut RpcModule<Api>, handler: F) -> Result<(), RegisterMethodError>
where
    M: Method + 'static,
    F: Fn(&Api, M::Params) -> Result<M::Answer, RpcError> + Copy + Send + Sync + 'static,
{
    answer::<M, _, _>(module, move |api: Arc<Api>, _, params| async move {
        blocking(move || handler(&api, params)).await?
    })
}

fn subscribe<S, F, R>(module: &mut RpcModule<Api>, handler: F) -> Result<(), RegisterMethodError>
where
    S: Subscription + 'static,
    F: Fn(Arc<Api>, Arc<Client>, S::Params, PendingSubscriptionSink) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    module.register_subscription(
        S::NAME,
        S::NOTIFICATION,
        S::CANCEL,
        move |params, pending, api, extensions| {
            let handler = handler.clone();
            async move {
                let parsed = client(&extensions).and_then(|client| Ok((client, parse::<S::Params>(&params, S::NAME)?)));
                match parsed {
                    Ok((client, params)) => handler(api, client, params, pending).await,
                    Err(error) => pending.reject(ErrorObjectOwned::from(error)).await,
                }
            }
        },
    )?;
    Ok(())
}

fn client(extensions: &Extensions) -> Result<Arc<Client>, RpcError> {
    let client = extensions.get::<Arc<Client>>().cloned();
    client.ok_or_else(|| RpcError::new(ErrorKind::Internal, "the connection has no client"))
}

fn parse<T: serde::de::DeserializeOwned>(params: &Params<'_>, method: &str) -> Result<T, RpcError> {
    let text = params.as_str().unwrap_or("{}");
    serde_json::from_str(text).map_err(|error| {
        RpcError::new(
            ErrorKind::InvalidParams,
            format!("the parameters of {method} are wrong: {error}"),
        )
        .hint("`params` is an object; `agentctl schema` describes it")
    })
}
