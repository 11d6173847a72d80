//! One connection that speaks JSON lines. Requests are executed in order; those that wait, and subscriptions, do not hold up the
//! next. A request without an id is executed and not answered. A peer that takes nothing for 30 s is cut.

use super::client::Client;
use super::framing::{Inbound, Incoming, next};
use super::register::WAITING;
use jsonrpsee::Extensions;
use jsonrpsee::core::server::{
    BoundedSubscriptions, MethodCallback, MethodResponse, MethodSink, Methods, SubscriptionState,
};
use jsonrpsee::server::{ConnectionId, RandomIntegerIdProvider};
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use protocol::{ErrorKind, RpcError};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Messages that wait to be written to one peer. Subscriptions wait for room, so this bounds what a slow peer holds.
const OUTBOUND_MESSAGES: usize = 32;

/// A peer whose socket takes nothing for so long is cut.
const STALL: Duration = Duration::from_secs(30);

/// Requests in one batch.
pub(crate) const BATCH: usize = 64;

/// Waiting requests and batches under way on one connection.
pub(crate) const CALLS_IN_FLIGHT: usize = 32;

/// Subscriptions on one connection.
pub(crate) const SUBSCRIPTIONS: u32 = 64;

/// Bytes of one answer.
const ANSWER_BYTES: usize = 64 << 20;

/// What a connection works with.
#[derive(Clone)]
struct Connection {
    methods: Methods,
    id: ConnectionId,
    client: Arc<Client>,
    sink: MethodSink,
    subscriptions: BoundedSubscriptions,
    in_flight: Arc<Semaphore>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<Id<'a>>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// A null id is an id.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Id<'de>>, D::Error> {
    Id::deserialize(deserializer).map(Some)
}

/// Serves one peer until it leaves, is cut, or `stop` says so.
pub(super) async fn serve(
    stream: UnixStream,
    number: usize,
    methods: Methods,
    client: Arc<Client>,
    inbound: Inbound,
    stop: tokio_util::sync::CancellationToken,
) {
    let (read, write) = stream.into_split();
    let (outbound, queue) = mpsc::channel(OUTBOUND_MESSAGES);
    let connection = Connection {
        methods,
        id: ConnectionId(number),
        client,
        sink: MethodSink::new_with_limit(outbound, u32::try_from(ANSWER_BYTES).unwrap_or(u32::MAX)),
        subscriptions: BoundedSubscriptions::new(SUBSCRIPTIONS),
        in_flight: Arc::new(Semaphore::new(CALLS_IN_FLIGHT)),
    };
    let mut writer = tokio::spawn(write_all(write, queue));
    let mut reader = BufReader::with_capacity(16 << 10, read);
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let incoming = tokio::select! {
            incoming = next(&mut reader, &inbound) => incoming,
            _ = &mut writer => break,
            () = stop.cancelled() => break,
        };
        match incoming {
            Ok(Incoming::Message(line)) => connection.take(line, &mut tasks).await,
            Ok(Incoming::TooLarge) => {
                let limit = super::framing::MESSAGE_BYTES >> 20;
                let error = RpcError::new(
                    ErrorKind::TooLarge,
                    format!("the message is over {limit} MiB and was skipped"),
                )
                .hint("send less at once");
                connection.refuse(Id::Null, error).await;
            }
            Ok(Incoming::Closed) => {
                // A peer that has shut down its side alone still gets what it asked for, subscriptions too.
                let rest = async {
                    while tasks.join_next().await.is_some() {}
                    drop(connection);
                    let _ = (&mut writer).await;
                };
                tokio::select! {
                    () = rest => {}
                    _ = hung_up(reader.get_ref()) => {}
                    () = stop.cancelled() => {}
                }
                return writer.abort();
            }
            Err(error) => {
                tracing::debug!(%error, "a connection was closed");
                return writer.abort();
            }
        }
    }
    tasks.shutdown().await;
    drop(connection);
    if !writer.is_finished() {
        let _ = timeout(STALL, &mut writer).await;
        writer.abort();
    }
}

/// Waits until the peer has closed its socket, and not just its writing side.
async fn hung_up(stream: &OwnedReadHalf) -> io::Result<()> {
    let stream: &UnixStream = stream.as_ref();
    // A descriptor of its own: waiting here takes no readiness from the writer.
    let own = std::os::unix::net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
    let watched = UnixStream::from_std(own)?;
    while !watched.ready(Interest::WRITABLE).await?.is_write_closed() {
        // That it can be written to is no news: the next wait is for a change.
        let _ = watched.try_io(Interest::WRITABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }
    Ok(())
}

impl Connection {
    async fn take(&self, line: Vec<u8>, tasks: &mut JoinSet<()>) {
        let text = match std::str::from_utf8(&line).map(str::trim) {
            Ok("") => return,
            Ok(text) => text,
            Err(error) => {
                let error = RpcError::new(ErrorKind::ParseError, format!("the message is not UTF-8: {error}"));
                return self.refuse(Id::Null, error).await;
            }
        };
        if text.starts_with('[') {
            return self.take_batch(text, tasks).await;
        }
        if waits(text) {
            let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else {
                return self
                    .refuse(id_of(text), too_many().hint("open another connection"))
                    .await;
            };
            let (connection, text) = (self.clone(), text.to_owned());
            tasks.spawn(async move {
                connection.one(&text).await;
                drop(permit);
            });
        } else {
            self.one(text).await;
        }
    }

    async fn one(&self, text: &str) {
        if let Some(response) = self.execute(text).await {
            self.answer(response).await;
        }
    }

    async fn answer(&self, response: MethodResponse) {
        // A subscription has answered by itself.
        if !response.is_subscription() {
            let (json, _, _): (_, Option<_>, _) = response.into_parts();
            let _ = self.sink.send(json).await;
        }
    }

    async fn refuse(&self, id: Id<'_>, error: RpcError) {
        let _ = self
            .sink
            .send(MethodResponse::error(id, ErrorObjectOwned::from(error)).into_json())
            .await;
    }

    async fn take_batch(&self, text: &str, tasks: &mut JoinSet<()>) {
        let requests: Vec<&RawValue> = match serde_json::from_str(text) {
            Ok(requests) => requests,
            Err(error) => return self.refuse(Id::Null, not_json(&error)).await,
        };
        if requests.is_empty() || requests.len() > BATCH {
            let error = RpcError::new(
                ErrorKind::InvalidRequest,
                format!("a batch holds 1 to {BATCH} requests"),
            );
            return self.refuse(Id::Null, error).await;
        }
        let requests: Vec<String> = requests.into_iter().map(|request| request.get().to_owned()).collect();
        let waiting = requests.iter().any(|request| waits(request));
        let connection = self.clone();
        let run = async move { connection.batch(requests).await };
        if waiting {
            let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else {
                return self.refuse(Id::Null, too_many().hint("open another connection")).await;
            };
            tasks.spawn(async move {
                run.await;
                drop(permit);
            });
        } else {
            run.await;
        }
    }

    async fn batch(&self, requests: Vec<String>) {
        let mut answers = Vec::new();
        for request in requests {
            match self.execute(&request).await {
                Some(response) if !response.is_subscription() => answers.push(response.into_json()),
                _ => {}
            }
        }
        if let (false, Ok(json)) = (answers.is_empty(), serde_json::value::to_raw_value(&answers)) {
            let _ = self.sink.send(json).await;
        }
    }

    /// Executes one request; `None` if it wants no answer.
    async fn execute(&self, text: &str) -> Option<MethodResponse> {
        let request: Request<'_> = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => return Some(self.unreadable(text, &error)),
        };
        let wants_answer = request.id.is_some();
        let id = request.id.unwrap_or(Id::Null);
        if request.jsonrpc != "2.0" {
            let error = RpcError::new(ErrorKind::InvalidRequest, "`jsonrpc` must be \"2.0\"");
            return wants_answer.then(|| MethodResponse::error(id, ErrorObjectOwned::from(error)));
        }
        let response = self
            .call(id, &request.method, Params::new(request.params.map(RawValue::get)))
            .await;
        wants_answer.then_some(response)
    }

    fn unreadable(&self, text: &str, error: &serde_json::Error) -> MethodResponse {
        let json = serde_json::from_str::<&RawValue>(text).is_ok();
        let error = if json {
            RpcError::new(
                ErrorKind::InvalidRequest,
                format!("this is not a JSON-RPC 2.0 request: {error}"),
            )
            .hint(r#"send {"jsonrpc": "2.0", "id": 1, "method": "daemon.status"}"#)
        } else {
            not_json(error)
        };
        MethodResponse::error(id_of(text), ErrorObjectOwned::from(error))
    }

    async fn call(&self, id: Id<'_>, method: &str, params: Params<'_>) -> MethodResponse {
        let mut extensions = Extensions::new();
        extensions.insert(Arc::clone(&self.client));
        match self.methods.method(method) {
            None => {
                let error = RpcError::new(ErrorKind::MethodNotFound, format!("there is no method {method}"))
                    .hint("`agentctl schema` prints them all");
                MethodResponse::error(id, ErrorObjectOwned::from(error))
            }
            Some(MethodCallback::Sync(run)) => run(id, params, ANSWER_BYTES, extensions),
            Some(MethodCallback::Async(run)) => {
                run(id.into_owned(), params.into_owned(), self.id, ANSWER_BYTES, extensions).await
            }
            Some(MethodCallback::Unsubscription(run)) => run(id, params, self.id, ANSWER_BYTES, extensions),
            Some(MethodCallback::Subscription(run)) => {
                let Some(subscription_permit) = self.subscriptions.acquire() else {
                    let error = RpcError::new(
                        ErrorKind::LimitReached,
                        format!("{SUBSCRIPTIONS} subscriptions on one connection"),
                    );
                    return MethodResponse::error(id, ErrorObjectOwned::from(error.hint("open another connection")));
                };
                let id_provider = &RandomIntegerIdProvider;
                let state = SubscriptionState {
                    conn_id: self.id,
                    id_provider,
                    subscription_permit,
                };
                run(id, params, self.sink.clone(), state, extensions).await
            }
        }
    }
}

/// Whether a request is answered only after something else has happened.
fn waits(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Name<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_str::<Name<'_>>(text).is_ok_and(|name| WAITING.contains(&name.method.as_ref()))
}

/// The id of a request that may be broken.
fn id_of(text: &str) -> Id<'static> {
    #[derive(Deserialize)]
    struct Only<'a> {
        #[serde(borrow)]
        id: Id<'a>,
    }
    serde_json::from_str::<Only<'_>>(text).map_or(Id::Null, |only| only.id.into_owned())
}

fn too_many() -> RpcError {
    RpcError::new(
        ErrorKind::LimitReached,
        format!("{CALLS_IN_FLIGHT} requests wait on this connection"),
    )
}

fn not_json(error: &serde_json::Error) -> RpcError {
    RpcError::new(ErrorKind::ParseError, format!("the message is not JSON: {error}")).hint("one JSON message a line")
}

async fn write_all<W: AsyncWrite + Unpin>(mut writer: W, mut queue: mpsc::Receiver<Box<RawValue>>) -> io::Result<()> {
    let mut batch = Vec::with_capacity(OUTBOUND_MESSAGES);
    let mut bytes = Vec::new();
    while queue.recv_many(&mut batch, OUTBOUND_MESSAGES).await > 0 {
        bytes.clear();
        for message in batch.drain(..) {
            bytes.extend_from_slice(message.get().as_bytes());
            bytes.push(b'\n');
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let written = timeout(STALL, writer.write(rest))
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            rest = rest.get(written..).unwrap_or_default();
        }
        bytes.shrink_to(64 << 10);
    }
    writer.shutdown().await
}
