//! The socket: made under a temporary name and renamed into place, private to the user, made anew when it vanishes. Each peer is
//! looked at before its first byte is.

use super::Api;
use super::client::Client;
use super::connection;
use super::framing::Inbound;
use super::peer::{Peer, look};
use super::register::methods;
use jsonrpsee::types::{ErrorObjectOwned, Id};
use protocol::{ErrorKind, RpcError};
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Connections at once.
const CONNECTIONS: usize = 256;

/// Connections at once of one process.
const CONNECTIONS_PER_PEER: usize = 128;

/// Connections that are being looked at or turned away. Others wait in the kernel's queue, so that a crowd takes no descriptors.
const ARRIVALS: usize = 32;

/// Time a new connection gets for its first byte, so that silent ones hold no place.
const FIRST_BYTE: Duration = Duration::from_secs(10);

/// How often the socket's file is looked at.
const SOCKET_CHECK: Duration = Duration::from_secs(3);
const _: () = assert!(SOCKET_CHECK.as_secs() < 5, "a socket that vanished is back within 5 s");

/// Pause when the system has no descriptor left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// The socket cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the socket {}: {error}\nhint: set AGENTD_SOCKET to a path in a directory of your own", path.display())]
pub(crate) struct ListenError {
    path: PathBuf,
    error: io::Error,
}

/// A socket that is there.
#[derive(Debug)]
pub(crate) struct Bound {
    listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

/// Makes the socket at `path`; one that stands there is taken over. Call it only as the one daemon of its state directory.
///
/// # Errors
/// When the directory or the socket cannot be made.
pub(crate) fn bind(path: &Path) -> Result<Bound, ListenError> {
    let fail = |error| ListenError {
        path: path.to_owned(),
        error,
    };
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(fail(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another daemon listens there",
        )));
    }
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(fail)?;
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push("~");
    let temporary = PathBuf::from(temporary);
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let listener = UnixListener::bind(&temporary).map_err(fail)?;
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    std::fs::rename(&temporary, path).map_err(fail)?;
    let inode = std::fs::symlink_metadata(path).map_err(fail)?.ino();
    Ok(Bound {
        listener,
        path: path.to_owned(),
        inode,
    })
}

impl Bound {
    fn in_place(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.in_place() {
            // The path was ours a moment ago, and it stays behind at worst, where the next daemon takes it over.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Serves connections until `stop`, then closes them.
///
/// # Errors
/// When the table of methods is wrong, which it is not.
pub(crate) async fn serve(mut bound: Bound, api: Arc<Api>, stop: CancellationToken) -> anyhow::Result<()> {
    let methods: jsonrpsee::Methods = methods(Arc::clone(&api))?.into();
    let gate = Gate::default();
    let inbound = Inbound::default();
    let mut connections = JoinSet::new();
    let mut check = tokio::time::interval(SOCKET_CHECK);
    let mut number = 0;
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            // Before the socket is looked at: who came to one that vanished since is let in, not dropped with it.
            accepted = gate.accept(&bound.listener) => accepted,
            _ = check.tick() => {
                if !bound.in_place() {
                    bound = renewed(bound);
                }
                continue;
            }
        };
        match accepted {
            Ok((arrival, stream)) => {
                number += 1;
                let connection = Incomer {
                    arrival,
                    stream,
                    number,
                    methods: methods.clone(),
                    api: Arc::clone(&api),
                };
                connections.spawn(connection.serve(gate.clone(), inbound.clone(), stop.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted just now");
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
    let _ = timeout(Duration::from_secs(2), async {
        while connections.join_next().await.is_some() {}
    })
    .await;
    Ok(())
}

/// A socket that vanished is made anew; clients that are connected stay so.
fn renewed(bound: Bound) -> Bound {
    match bind(&bound.path) {
        Ok(renewed) => {
            tracing::warn!(path = %bound.path.display(), "the socket was gone and has been made anew");
            renewed
        }
        Err(error) => {
            tracing::error!(%error, "the socket is gone");
            bound
        }
    }
}

/// Places for connections.
#[derive(Debug, Clone)]
struct Gate {
    arrivals: Arc<Semaphore>,
    places: Arc<Semaphore>,
    per_peer: Arc<Mutex<HashMap<i32, usize>>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            arrivals: Arc::new(Semaphore::new(ARRIVALS)),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
            per_peer: Arc::default(),
        }
    }
}

/// A place that is taken.
struct Place {
    _permit: OwnedSemaphorePermit,
    pid: i32,
    gate: Gate,
}

impl Gate {
    /// The next connection, when there is time to look at it.
    async fn accept(&self, listener: &UnixListener) -> io::Result<(OwnedSemaphorePermit, UnixStream)> {
        let arrival = Arc::clone(&self.arrivals).acquire_owned().await;
        let arrival = arrival.map_err(io::Error::other)?;
        let (stream, _) = listener.accept().await?;
        Ok((arrival, stream))
    }

    fn enter(&self, pid: i32) -> Option<Place> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut per_peer = self.per_peer.lock().unwrap_or_else(PoisonError::into_inner);
        let count = per_peer.entry(pid).or_default();
        if *count >= CONNECTIONS_PER_PEER {
            return None;
        }
        *count += 1;
        Some(Place {
            _permit: permit,
            pid,
            gate: self.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut per_peer = self.gate.per_peer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = per_peer.get_mut(&self.pid) {
            *count -= 1;
            if *count == 0 {
                per_peer.remove(&self.pid);
            }
        }
    }
}

/// A connection that was accepted and not yet looked at.
struct Incomer {
    arrival: OwnedSemaphorePermit,
    stream: UnixStream,
    number: usize,
    methods: jsonrpsee::Methods,
    api: Arc<Api>,
}

impl Incomer {
    async fn serve(mut self, gate: Gate, inbound: Inbound, stop: CancellationToken) {
        let peer = match look(&self.stream) {
            Ok(peer) => peer,
            Err(error) => return tracing::debug!(%error, "a peer could not be looked at"),
        };
        if let Err(error) = allowed(&peer) {
            return refuse(&mut self.stream, error).await;
        }
        let Some(_place) = gate.enter(peer.pid.unwrap_or(0)) else {
            let error = RpcError::new(ErrorKind::LimitReached, "the daemon has too many connections");
            return refuse(&mut self.stream, error.hint("close some and try again")).await;
        };
        drop(self.arrival);
        match timeout(FIRST_BYTE, peek(&self.stream)).await {
            Ok(Ok(Some(first))) if is_http(first) => return refuse_http(&mut self.stream).await,
            Ok(Ok(Some(_))) => {}
            _ => return,
        }
        self.api.clients.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client::new(peer));
        connection::serve(self.stream, self.number, self.methods, client, inbound, stop).await;
        self.api.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

fn allowed(peer: &Peer) -> Result<(), RpcError> {
    let own = rustix::process::geteuid().as_raw();
    if peer.uid == own {
        return Ok(());
    }
    let message = format!("this daemon belongs to uid {own}, and you are uid {}", peer.uid);
    Err(RpcError::new(ErrorKind::NotAuthorized, message).hint("each user has a daemon of their own"))
}

/// HTTP begins with the capitals of its method, and no JSON text does.
fn is_http(first: u8) -> bool {
    first.is_ascii_uppercase()
}

/// The first byte, left where it is; `None` if the peer left without one.
async fn peek(stream: &UnixStream) -> io::Result<Option<u8>> {
    loop {
        stream.readable().await?;
        let mut first = [0_u8];
        let peeked = stream.try_io(tokio::io::Interest::READABLE, || {
            rustix::net::recv(stream, &mut first, rustix::net::RecvFlags::PEEK).map_err(io::Error::from)
        });
        match peeked {
            Ok((0, _)) => return Ok(None),
            Ok(_) => return Ok(Some(first[0])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn refuse(stream: &mut UnixStream, error: RpcError) {
    let mut line = jsonrpsee::MethodResponse::error(Id::Null, ErrorObjectOwned::from(error))
        .into_json()
        .get()
        .to_owned();
    line.push('\n');
    // The peer may be gone, and nothing more is owed to it.
    let _ = timeout(FIRST_BYTE, stream.write_all(line.as_bytes())).await;
}

async fn refuse_http(stream: &mut UnixStream) {
    const BODY: &str = "agentd speaks JSON-RPC here, one JSON message a line; HTTP is not served yet.\n";
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    let written = timeout(FIRST_BYTE, stream.write_all(answer.as_bytes())).await;
    if matches!(written, Ok(Ok(()))) {
        let _ = stream.shutdown().await;
        // What the peer still sends is read away, so that the answer is not lost to a reset.
        let mut rest = [0_u8; 1024];
        let _ = timeout(Duration::from_secs(1), stream.read(&mut rest)).await;
    }
}
