//! A client that knows nothing but the protocol's text: JSON lines over the Unix socket, as `nc -U` would send them.

use crate::soon;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// One connection.
#[derive(Debug)]
pub struct Peer {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    last_id: u64,
    /// Notifications that came while an answer was waited for.
    waiting: VecDeque<Value>,
}

impl Peer {
    /// Connects, without a handshake.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn connect(socket: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket)
            .await
            .with_context(|| socket.display().to_string())?;
        let (reader, writer) = stream.into_split();
        Ok(Self {
            reader: BufReader::new(reader),
            writer,
            last_id: 0,
            waiting: VecDeque::new(),
        })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the daemon has closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        soon("the daemon takes the bytes", self.writer.write_all(bytes))
            .await?
            .context("the connection")
    }

    /// The next line, or `None` when the daemon has closed the connection.
    ///
    /// # Errors
    /// When nothing comes, or what comes is no JSON.
    pub async fn line(&mut self) -> anyhow::Result<Option<Value>> {
        let mut line = String::new();
        let count = match soon("a line from the daemon", self.reader.read_line(&mut line)).await? {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            return Ok(None);
        }
        let value = serde_json::from_str(&line).with_context(|| format!("the daemon sent {line:?}"))?;
        Ok(Some(value))
    }

    /// Sends one request and gives the whole response object.
    ///
    /// # Errors
    /// When no response comes.
    pub async fn request(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.begin(method, params).await?;
        self.response(id).await
    }

    /// Sends one request without waiting for its response, whose id is given.
    ///
    /// # Errors
    /// When the daemon has closed the connection.
    pub async fn begin(&mut self, method: &str, params: Value) -> anyhow::Result<u64> {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.send(format!("{request}\n").as_bytes()).await?;
        Ok(self.last_id)
    }

    /// The response to the request `id`.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn response(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let line = self
                .line()
                .await?
                .with_context(|| format!("the daemon left before response {id}"))?;
            if line.get("id") == Some(&json!(id)) {
                return Ok(line);
            }
            self.waiting.push_back(line);
        }
    }

    /// Calls a method and gives its answer.
    ///
    /// # Errors
    /// When the daemon answers an error.
    pub async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let mut response = self.request(method, params).await?;
        match response.get("error") {
            None => Ok(response["result"].take()),
            Some(error) => bail!("{method}: {error}"),
        }
    }

    /// Calls a method that must fail, and gives the error object.
    ///
    /// # Errors
    /// When the daemon answers anything else.
    pub async fn refused(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let mut response = self.request(method, params).await?;
        match response.get_mut("error") {
            Some(error) => Ok(error.take()),
            None => bail!("{method} was answered: {response}"),
        }
    }

    /// The handshake; with the token it makes a controller.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn hello(&mut self, name: &str, token: Option<&str>) -> anyhow::Result<Value> {
        let mut params = json!({"version": protocol::VERSION, "client": name, "kind": "script"});
        if let Some(token) = token {
            params["token"] = token.into();
        }
        self.call("daemon.hello", params).await
    }

    /// Attaches to a session: from then on [`Peer::frame`] gives its frames.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn attach(&mut self, session: &str, after_seq: Option<u64>) -> anyhow::Result<()> {
        let mut params = json!({"session": session});
        if let Some(after) = after_seq {
            params["after_seq"] = after.into();
        }
        self.call("session.attach", params).await.map(drop)
    }

    /// The next frame of the subscription; `None` when the connection is over.
    ///
    /// # Errors
    /// When none comes.
    pub async fn frame(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            let line = match self.waiting.pop_front() {
                Some(line) => Some(line),
                None => self.line().await?,
            };
            let Some(mut line) = line else { return Ok(None) };
            if let Some(frame) = line.pointer_mut("/params/result") {
                return Ok(Some(frame.take()));
            }
        }
    }

    /// Reads frames up to the first that `wanted` accepts, and gives all of them, that one last.
    ///
    /// # Errors
    /// When it does not come; the message has the last frames that did.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Vec<Value>> {
        let mut frames: Vec<Value> = Vec::new();
        loop {
            let frame = self
                .frame()
                .await
                .and_then(|frame| frame.context("the connection ended"));
            let frame = frame.with_context(|| {
                let last: Vec<String> = frames.iter().rev().take(5).map(Value::to_string).collect();
                format!(
                    "waiting for {what}; the last frames, newest first:\n{}",
                    last.join("\n")
                )
            })?;
            let found = wanted(&frame);
            frames.push(frame);
            if found {
                return Ok(frames);
            }
        }
    }

    /// Closes the writing side only, as `nc -N` does.
    ///
    /// # Errors
    /// When the connection is gone already.
    pub async fn finish_writing(&mut self) -> anyhow::Result<()> {
        Ok(self.writer.shutdown().await?)
    }
}

/// Whether a frame is an event of this kind.
pub fn is(frame: &Value, kind: &str) -> bool {
    frame.get("kind").and_then(Value::as_str) == Some(kind)
}

/// The last of some frames.
///
/// # Errors
/// When there is none.
pub fn last(frames: &[Value]) -> anyhow::Result<&Value> {
    frames.last().context("no frame")
}
