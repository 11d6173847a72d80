//! The HTTP side: reads a request, checks it, finds its reply, streams it.

use super::check::Check;
use super::script::{End, Reply, Script};
use super::seen::{Seen, Wire};
use super::stream::{self, Fresh, Issued};
use super::{chat, messages, responses};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::Listener;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What handlers and the test share.
#[derive(Debug)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    /// Number of requests seen.
    pub(super) requests: watch::Sender<usize>,
    /// Number of replies left before their end.
    pub(super) left: watch::Sender<usize>,
    fresh: Fresh,
    issued: Issued,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) script: Script,
    pub(super) key: Option<String>,
    /// Keys that are refused whatever is wanted.
    pub(super) refused: Vec<String>,
    pub(super) seen: Vec<Seen>,
    pub(super) faults: Vec<String>,
}

impl Shared {
    pub(super) fn new(script: Script) -> Self {
        let inner = Inner {
            script,
            key: None,
            refused: Vec::new(),
            seen: Vec::new(),
            faults: Vec::new(),
        };
        Self {
            inner: Mutex::new(inner),
            requests: watch::Sender::new(0),
            left: watch::Sender::new(0),
            fresh: Fresh::default(),
            issued: Issued::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the request and finds its reply.
    fn reply(&self, seen: &Seen) -> Option<Reply> {
        let mut inner = self.lock();
        inner.seen.push(seen.clone());
        let reply = inner.script.next(seen);
        if reply.is_none() {
            let fault = format!(
                "the script has no reply to request {}: {:?}",
                inner.seen.len(),
                seen.said.last()
            );
            inner.faults.push(fault);
        }
        drop(inner);
        self.requests.send_modify(|requests| *requests += 1);
        reply
    }
}

/// The routes of the wires. Bodies are as big as a test makes them.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let wires = [
        ("/v1/messages", Wire::Messages),
        ("/v1/chat/completions", Wire::Chat),
        ("/v1/responses", Wire::Responses),
    ];
    let router = wires.into_iter().fold(Router::new(), |router, (path, wire)| {
        router.route(
            path,
            post(async move |State(shared), headers, body| answer(wire, &shared, &headers, &body)),
        )
    });
    let models = axum::Json(serde_json::json!({"object": "list", "data": [{"id": "scripted-1"}]}));
    router
        .route("/v1/models", axum::routing::get(async move || models))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(shared)
}

fn answer(wire: Wire, shared: &Arc<Shared>, headers: &HeaderMap, body: &Bytes) -> Response {
    let key = key(wire, headers);
    let (wanted, refused) = {
        let inner = shared.lock();
        let refused = key.as_ref().is_some_and(|key| inner.refused.contains(key));
        (inner.key.clone(), refused)
    };
    if refused || (wanted.is_some() && key != wanted) {
        return refuse(
            wire,
            StatusCode::UNAUTHORIZED,
            "authentication_error",
            "invalid api key",
        );
    }
    let seen = match read(wire, shared, headers, body) {
        Ok(seen) => Seen { key, ..seen },
        Err(fault) => {
            shared.lock().faults.push(format!("{}: {fault}", wire.name()));
            return refuse(wire, StatusCode::BAD_REQUEST, "invalid_request_error", &fault);
        }
    };
    match shared.reply(&seen) {
        Some(reply) => respond(shared, &seen, reply),
        None => refuse(
            wire,
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "the script has no reply left",
        ),
    }
}

fn key(wire: Wire, headers: &HeaderMap) -> Option<String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let key = match wire {
        Wire::Messages => header("x-api-key").or(bearer),
        Wire::Chat | Wire::Responses => bearer,
    };
    key.map(str::to_owned)
}

fn read(wire: Wire, shared: &Shared, headers: &HeaderMap, body: &[u8]) -> Check<Seen> {
    let body: Value = serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    match wire {
        Wire::Messages => {
            let version = headers.get("anthropic-version").map(|value| value.as_bytes());
            super::check::require(version == Some(b"2023-06-01"), || {
                "`anthropic-version` must be 2023-06-01".into()
            })?;
            messages::read(&body, &shared.issued)
        }
        Wire::Chat => chat::read(&body),
        Wire::Responses => responses::read(&body, &shared.issued),
    }
}

fn refuse(wire: Wire, status: StatusCode, kind: &str, message: &str) -> Response {
    let body = match wire {
        Wire::Messages => messages::error_body(kind, message),
        Wire::Chat | Wire::Responses => chat::error_body(kind, message),
    };
    (status, [("content-type", "application/json")], body).into_response()
}

fn respond(shared: &Shared, seen: &Seen, reply: Reply) -> Response {
    if let End::Status { status, headers, body } = &reply.end {
        let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, body.clone()).into_response();
        for (name, value) in headers {
            if let (Ok(name), Ok(value)) = (name.parse::<axum::http::HeaderName>(), value.parse()) {
                response.headers_mut().insert(name, value);
            }
        }
        return response;
    }
    let chunks = match seen.wire {
        Wire::Messages => messages::write(&reply, seen, &shared.fresh, &shared.issued),
        Wire::Chat => chat::write(&reply, seen, &shared.fresh),
        Wire::Responses => responses::write(&reply, seen, &shared.fresh, &shared.issued),
    };
    let body = stream::body(chunks, reply.gate, reply.end, shared.left.clone());
    ([("content-type", "text/event-stream")], body).into_response()
}

/// Accepts connections that send each chunk at once: a benchmark must not measure the system's delays.
pub(super) struct NoDelay(pub(super) TcpListener);

impl Listener for NoDelay {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        let _ = stream.set_nodelay(true);
        (stream, address)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
