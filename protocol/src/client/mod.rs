//! The typed client: one connection to the daemon, one call at a time, or one subscription. Nothing is read that nobody asked
//! for, so a slow client holds back only itself. Finding, starting and greeting the daemon happen in [`Client::connect`].

mod error;
mod find;
mod frames;
mod lines;
mod start;
#[cfg(test)]
mod tests;
mod wire;

pub use error::ClientError;
pub use frames::Frames;
pub use start::{start, use_config};

use crate::method::{DaemonHello, Hello, HelloParams, Method, Subscription};
use crate::{ErrorKind, RpcError, VERSION, environment, place};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;
use wire::Wire;

/// Who connects, and what may be done to get a daemon.
#[derive(Debug, Clone)]
pub struct Connect {
    /// The client's name, at most 64 bytes: `agentctl`.
    pub name: String,
    /// What it is: `cli`, `tui`.
    pub kind: String,
    /// A person sits before it who can answer approvals.
    pub answers: bool,
    /// Whether a daemon is started where none runs.
    pub autostart: Autostart,
}

/// Whether a daemon is started where none runs. `AGENTD_AUTOSTART=0` makes it `No` everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autostart {
    Yes,
    /// Only in place of one that crashed: who has stopped it wants it stopped, and who waits for an answer is no reason to the contrary.
    AfterCrash,
    No,
}

/// One connection to the daemon, greeted.
#[derive(Debug)]
pub struct Client {
    wire: Wire,
    hello: Hello,
    socket: PathBuf,
}

impl Client {
    /// Finds the daemon (`$AGENTD_SOCKET`, then the socket the lock file names, then the default place), starts one if none
    /// runs and that is wanted, and greets it with the token of the state directory.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] with the reason, also that of a failed start; [`ClientError::Incompatible`] if the major
    /// versions differ.
    pub async fn connect(options: &Connect) -> Result<Self, ClientError> {
        match Self::connect_once(options).await {
            Err(ClientError::Unreachable { .. } | ClientError::Lost) if start::wanted(options.autostart) => {
                start::start().await?;
                Self::connect_once(options).await
            }
            // The daemon changed between the connection and the reading of the token.
            Err(ClientError::Rpc(error)) if error.kind == ErrorKind::NotAuthorized => Self::connect_once(options).await,
            result => result,
        }
    }

    async fn connect_once(options: &Connect) -> Result<Self, ClientError> {
        let (stream, socket) = find::connect().await?;
        Self::over(stream, socket, options).await
    }

    /// Greets whoever is at the other end of `stream`.
    async fn over(stream: UnixStream, socket: PathBuf, options: &Connect) -> Result<Self, ClientError> {
        let mut wire = Wire::new(stream);
        let hello = greet(&mut wire, options).await?;
        Ok(Self { wire, hello, socket })
    }

    /// The daemon's side of the handshake.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The socket of this connection.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Calls a method and waits for its answer, however long that takes. A call that is dropped before its answer leaves the
    /// connection usable; the daemon may have carried it out.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] with the daemon's error, [`ClientError::Lost`] if the connection ends first.
    pub async fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Answer, ClientError> {
        self.wire.call(M::NAME, params).await
    }

    /// Turns the connection into one subscription.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub async fn subscribe<S: Subscription>(mut self, params: &S::Params) -> Result<Frames<S::Item>, ClientError> {
        let id: serde_json::Value = self.wire.call(S::NAME, params).await?;
        Ok(Frames::new(self.wire, S::NOTIFICATION, id))
    }
}

/// The handshake, and a second one where the daemon wants keys or further variables: with those this process has, or to say that
/// it has none.
async fn greet(wire: &mut Wire, options: &Connect) -> Result<Hello, ClientError> {
    let mut params = HelloParams {
        version: VERSION.to_owned(),
        client: options.name.clone(),
        kind: options.kind.clone(),
        token: token(),
        answers: options.answers,
        role: None,
        environment: environment::of(std::env::vars_os()),
        keys: BTreeMap::new(),
    };
    let hello = hello(wire, &params).await?;
    params.keys = set_here(&hello.lacks);
    params.environment.extend(set_here(&hello.environment));
    if hello.lacks.is_empty() && hello.environment.is_empty() {
        return Ok(hello);
    }
    self::hello(wire, &params).await
}

async fn hello(wire: &mut Wire, params: &HelloParams) -> Result<Hello, ClientError> {
    match wire.call::<_, Hello>(DaemonHello::NAME, params).await {
        Ok(hello) if major(&hello.version) == major(VERSION) => Ok(hello),
        Ok(hello) => Err(ClientError::incompatible(&hello.version)),
        Err(ClientError::Rpc(error)) if error.kind == ErrorKind::IncompatibleVersion => {
            Err(ClientError::Incompatible(error))
        }
        Err(error) => Err(error),
    }
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

/// The token of the daemon's present life. Read after the connection stands, so that it is not that of an earlier one. Without
/// it the daemon lets this client watch, and says so when it tries to act.
fn token() -> Option<String> {
    let text = std::fs::read_to_string(place::token_file(&place::state_dir().ok()?)).ok()?;
    Some(text.trim_end().to_owned())
}

/// Those of the named variables that are set here.
fn set_here(names: &[String]) -> BTreeMap<String, String> {
    names
        .iter()
        .filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

impl From<RpcError> for ClientError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}
