//! JSON-RPC 2.0 over JSON lines, the client's side: one request, one answer, matched by number.

use super::error::ClientError;
use super::lines::{LINE_BYTES, Lines};
use crate::{ErrorKind, RpcError};
use jsonrpsee::types::ErrorObjectOwned;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// Longest message the daemon takes, in bytes.
pub(super) const MESSAGE_BYTES: usize = 16 * 1024 * 1024;
const _: () = assert!(MESSAGE_BYTES < LINE_BYTES);

/// A connection's two directions.
#[derive(Debug)]
pub(super) struct Wire {
    stream: UnixStream,
    lines: Lines,
    /// Bytes of requests not yet written; kept here so that a dropped call leaves no half line behind.
    outgoing: Vec<u8>,
    last_id: u64,
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

/// Anything the daemon sends.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default, borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorObjectOwned>,
}

impl Wire {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            lines: Lines::default(),
            outgoing: Vec::new(),
            last_id: 0,
        }
    }

    /// Sends a request and waits for its answer. Answers to calls that were dropped, and notifications, are skipped.
    pub(super) async fn call<P: Serialize, A: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &P,
    ) -> Result<A, ClientError> {
        let id = self.enqueue(method, params)?;
        self.flush().await;
        loop {
            let message = self.message().await?;
            if message.method.is_some() || message.id.is_some_and(|answered| answered != id) {
                continue;
            }
            // An error without id is about a line the daemon could not read, and ours is the only one under way.
            return match (message.result, message.error) {
                (Some(result), _) => serde_json::from_str(result.get()).map_err(|error| malformed(method, &error)),
                (None, Some(error)) => Err(ClientError::Rpc(RpcError::from(&error))),
                // An answer of `null` reads as absent here.
                (None, None) => serde_json::from_str("null").map_err(|error| malformed(method, &error)),
            };
        }
    }

    fn enqueue<P: Serialize>(&mut self, method: &str, params: &P) -> Result<u64, ClientError> {
        self.last_id += 1;
        let request = Request {
            jsonrpc: "2.0",
            id: self.last_id,
            method,
            params,
        };
        let mut line = serde_json::to_vec(&request).map_err(|error| malformed(method, &error))?;
        if line.len() > MESSAGE_BYTES {
            let message = format!("a message of {} bytes is over the limit of 16 MiB", line.len());
            let hint = "send less at once: put it into a file and name that";
            return Err(RpcError::new(ErrorKind::TooLarge, message).hint(hint).into());
        }
        line.push(b'\n');
        self.outgoing.append(&mut line);
        Ok(self.last_id)
    }

    /// Writes what waits. A dropped write goes on where it was at the next call. A failed one shows when the answer is read:
    /// the daemon may have said why before it closed.
    async fn flush(&mut self) {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing).await {
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(_) => self.outgoing.clear(),
            }
        }
    }

    /// The next message of the daemon. Dropping the read loses nothing.
    pub(super) async fn message(&mut self) -> Result<Message<'_>, ClientError> {
        let line = self
            .lines
            .next(&mut self.stream)
            .await
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::InvalidData => ClientError::Malformed(error.to_string()),
                _ => ClientError::Lost,
            })?;
        let line = line.ok_or(ClientError::Lost)?;
        serde_json::from_slice(line).map_err(|error| ClientError::Malformed(error.to_string()))
    }
}

fn malformed(method: &str, error: &serde_json::Error) -> ClientError {
    ClientError::Malformed(format!("{method}: {error}"))
}
