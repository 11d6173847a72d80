//! `daemon.*`: the handshake, how it is, and its end.

use super::Api;
use super::client::{Client, Introduced};
use super::connection::{BATCH, CALLS_IN_FLIGHT, SUBSCRIPTIONS};
use super::framing::MESSAGE_BYTES;
use protocol::frame::Role;
use protocol::method::{DaemonStatusAnswer, DoctorAnswer, Empty, Hello, HelloParams, ProtocolLimits, StopParams};
use protocol::{ErrorKind, RpcError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// Bytes of a client's name and kind.
const NAME_BYTES: usize = 64;

/// Time running turns get when the daemon is told to stop.
const DRAIN_MS: u64 = 30_000;

pub(super) async fn hello(api: Arc<Api>, client: Arc<Client>, params: HelloParams) -> Result<Hello, RpcError> {
    check_version(&params.version)?;
    if params.client.is_empty() || params.client.len() > NAME_BYTES || params.kind.len() > NAME_BYTES {
        return Err(RpcError::new(
            ErrorKind::InvalidParams,
            format!("client and kind are 1 to {NAME_BYTES} bytes"),
        ));
    }
    let trusted = match &params.token {
        None => false,
        Some(token) if token.trim().as_bytes().ct_eq(api.token.as_bytes()).into() => true,
        Some(_) => {
            return Err(
                RpcError::new(ErrorKind::NotAuthorized, "the token is not this daemon's")
                    .hint("read `token` in the daemon's state directory again: it is new at each start"),
            );
        }
    };
    let role = match (trusted, params.role) {
        (true, None | Some(Role::Controller)) => Role::Controller,
        (true, Some(role)) => role,
        (false, _) => Role::Observer,
    };
    // A client's first greeting has no keys yet: only the next one says that it has none.
    let again = client.greeted();
    let role = client.introduce(Introduced {
        name: params.client,
        kind: params.kind,
        role,
        answers: params.answers,
        environment: params.environment,
    });
    if role == Role::Controller {
        api.keys.offer(params.keys)?;
        if again {
            api.keys.look_around().await;
        }
    }
    Ok(Hello {
        version: protocol::VERSION.to_owned(),
        daemon: env!("CARGO_PKG_VERSION").to_owned(),
        role,
        capabilities: Vec::new(),
        limits: ProtocolLimits {
            message_bytes: MESSAGE_BYTES as u64,
            batch: BATCH as u32,
            calls_in_flight: CALLS_IN_FLIGHT as u32,
            subscriptions: SUBSCRIPTIONS,
            queued_inputs: crate::session::MAX_WAITING as u32,
        },
        environment: if role == Role::Controller {
            api.desk.environment()
        } else {
            Vec::new()
        },
        lacks: if role == Role::Controller {
            api.keys.lacks()
        } else {
            Vec::new()
        },
        takes_base_url: api.keys.takes_base_url(),
        model_notice: api.keys.notice(),
        attention: api.desk.attention(),
        config_fault: api.desk.fault(),
        local_server: api.keys.undecided(),
    })
}

fn check_version(theirs: &str) -> Result<(), RpcError> {
    let major = |version: &str| version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let (Some(client), Some(own)) = (major(theirs), major(protocol::VERSION)) else {
        return Err(RpcError::new(
            ErrorKind::InvalidParams,
            format!("version {theirs:?} is not major.minor"),
        ));
    };
    let (older, hint) = match client.cmp(&own) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => ("client", "upgrade the client"),
        std::cmp::Ordering::Greater => ("daemon", "upgrade agentd, then restart it: agentctl daemon stop"),
    };
    let message = format!(
        "the client speaks protocol {theirs}, the daemon {}: the {older} is too old",
        protocol::VERSION
    );
    Err(RpcError::new(ErrorKind::IncompatibleVersion, message).hint(hint))
}

pub(super) async fn status(api: Arc<Api>, _: Arc<Client>, _: Empty) -> Result<DaemonStatusAnswer, RpcError> {
    let living = api.registry.living();
    let log = &api.registry.deps().log;
    let approvals = log.list_approvals(crate::log::ApprovalFilter::default()).await;
    let running = living
        .iter()
        .filter(|handle| handle.live().borrow().snapshot.turn.is_some())
        .count();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(DaemonStatusAnswer {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: protocol::VERSION.to_owned(),
        pid: std::process::id(),
        socket: api.socket.display().to_string(),
        state_dir: api.state_dir.display().to_string(),
        started_at: api.started_at,
        clients: api.clients.load(Ordering::Relaxed),
        sessions_open: count(living.len()),
        turns_running: count(running),
        approvals_pending: count(approvals.as_ref().map_or(0, Vec::len)),
        draining: api.draining(),
        storage_ok: approvals.is_ok() && log.probe().await.is_ok(),
    })
}

pub(super) async fn doctor(api: Arc<Api>, _: Arc<Client>, _: Empty) -> Result<DoctorAnswer, RpcError> {
    Ok(api.desk.doctor())
}

pub(super) async fn stop(api: Arc<Api>, _: Arc<Client>, params: StopParams) -> Result<Empty, RpcError> {
    api.drain
        .begin(Duration::from_millis(params.drain_ms.unwrap_or(DRAIN_MS)));
    Ok(Empty {})
}
