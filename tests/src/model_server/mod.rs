//! A model server with a script instead of a model: Anthropic Messages, OpenAI Chat Completions and OpenAI Responses over loopback.
//!
//! It is strict: a request that a real provider could refuse is answered 400, and a test in which that happened fails when
//! the server is dropped. It runs on a thread of its own, so a test may block.

mod chat;
mod check;
mod messages;
mod responses;
mod script;
mod seen;
mod serve;
mod stream;

pub use script::{End, Gate, Order, Part, Reply, Script, ScriptFile, Tokens};
pub use seen::{Call, Outcome, Said, Seen, Wire};

use crate::soon;
use anyhow::Context;
use serve::Shared;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A running server. Dropping it ends it, and fails the test if a request broke a rule.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts on a free port.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn start(script: Script) -> anyhow::Result<Self> {
        Self::start_on(0, script)
    }

    /// Starts on `port` of the loopback address; 0 takes a free one.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn start_on(port: u16, script: Script) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).context("the model server's port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let router = serve::router(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("model-server".into()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                    return;
                };
                tokio::select! {
                    _ = axum::serve(serve::NoDelay(listener), router) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a profile of `wire` names as `base_url`.
    pub fn base_url(&self, wire: Wire) -> String {
        format!("http://{}{}", self.address, wire.base_path())
    }

    /// From now on a request without this key is refused as the provider would.
    pub fn require_key(&self, key: &str) {
        self.shared.lock().key = Some(key.into());
    }

    /// From now on a request with this key is refused as the provider would.
    pub fn refuse_key(&self, key: &str) {
        self.shared.lock().refused.push(key.into());
    }

    /// Puts another script in the place of the present one.
    pub fn play(&self, script: Script) {
        self.shared.lock().script = script;
    }

    /// The requests so far, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// Waits until `count` requests came, and gives the last of these.
    ///
    /// # Errors
    /// When they do not come.
    pub async fn request(&self, count: usize) -> anyhow::Result<Seen> {
        let mut requests = self.shared.requests.subscribe();
        soon(
            &format!("request {count} to the model server"),
            requests.wait_for(|seen| *seen >= count),
        )
        .await??;
        let at = count.checked_sub(1).context("requests count from 1")?;
        self.shared
            .lock()
            .seen
            .get(at)
            .cloned()
            .context("a request that was seen")
    }

    /// Waits until clients have left `count` replies before their end.
    ///
    /// # Errors
    /// When they do not.
    pub async fn left(&self, count: usize) -> anyhow::Result<()> {
        let mut left = self.shared.left.subscribe();
        soon(
            &format!("client leaves reply {count}"),
            left.wait_for(|left| *left >= count),
        )
        .await??;
        Ok(())
    }

    /// What was wrong with requests, and forgets it: for a test that wants them wrong.
    pub fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().faults)
    }

    /// Waits for the server's end, which never comes by itself.
    pub fn run(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let faults = self.take_faults();
        if !std::thread::panicking() {
            assert!(
                faults.is_empty(),
                "requests to the model server broke its rules: {faults:#?}"
            );
        }
    }
}
