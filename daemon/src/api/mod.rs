//! The edge: the socket, who is at its other end, and a handler for each method. Only this module speaks JSON-RPC. A handler finds
//! the session, asks it, and answers; work never runs in one.

mod approval;
mod auth;
mod client;
mod config;
mod connection;
mod daemon;
mod find;
mod framing;
mod job;
mod keys;
mod listener;
mod model;
mod peer;
mod queue;
mod register;
mod roots;
mod rule;
mod session;
mod subscription;
mod tool;
mod trust;
mod turn;
mod usage;
mod watch;

pub(crate) use keys::{AskServers, KeyDesk};
pub(crate) use listener::{ListenError, bind, serve};

use crate::session::{Drain, Draining, Presence, Registry};
use protocol::{ErrorKind, RpcError, Time};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// What handlers share.
pub(crate) struct Api {
    pub(crate) registry: Registry,
    pub(crate) keys: Arc<dyn KeyDesk>,
    pub(crate) logins: Arc<crate::auth::Logins>,
    /// Content of the token file: what makes a client a controller.
    pub(crate) token: String,
    pub(crate) socket: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) started_at: Time,
    pub(crate) drain: Drain,
    /// Connections that are open.
    pub(crate) clients: AtomicU32,
    /// Clients that answer approvals of every session.
    pub(crate) answerers: Arc<Presence>,
    /// What clients are told of the configuration.
    pub(crate) desk: Arc<dyn SettingsDesk>,
}

/// Does what waits for files off the runtime's threads.
///
/// # Errors
/// When it panics.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, RpcError> {
    let failed = |error| RpcError::new(ErrorKind::Internal, format!("the request failed inside: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// What clients are told of the configuration as it is now.
pub(crate) trait SettingsDesk: Send + Sync {
    /// What a session is made with when its client does not say.
    fn defaults(&self) -> protocol::Settings;

    /// Names of variables that commands get beside the fixed list.
    fn environment(&self) -> Vec<String>;

    /// Every tool, offered or not.
    fn tools(&self) -> Vec<protocol::method::ToolInfo>;

    /// What the machine can enforce, and what commands of new sessions therefore run in.
    fn doctor(&self) -> protocol::method::DoctorAnswer;

    /// When and how clients ask for attention.
    fn attention(&self) -> protocol::attention::Attention;

    /// What is wrong with the configuration's file as it is now.
    fn fault(&self) -> Option<String>;
}

impl Api {
    /// Whether the daemon is about to stop.
    pub(crate) fn draining(&self) -> bool {
        self.drain.state() == Draining::Yes
    }

    /// Whether somebody is connected, a turn is open, a job runs or an approval waits.
    pub(crate) async fn needed(&self) -> bool {
        use std::sync::atomic::Ordering;
        let busy = |handle: &crate::session::Handle| {
            let live = handle.live();
            let live = live.borrow();
            live.snapshot.turn.is_some() || !live.snapshot.jobs.is_empty()
        };
        if self.clients.load(Ordering::Relaxed) > 0 || self.registry.living().iter().any(busy) {
            return true;
        }
        let waiting = self
            .registry
            .deps()
            .log
            .list_approvals(crate::log::ApprovalFilter::default())
            .await;
        waiting.is_ok_and(|waiting| !waiting.is_empty())
    }
}
