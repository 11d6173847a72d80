//! A real third-party model server, llama.cpp with a small model, where `.ci/run` has set it up.

use crate::bins::root;
use crate::skip::profile_dir;
use crate::soon;
use anyhow::Context;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The running server; it ends when this is dropped.
#[derive(Debug)]
pub struct RealModel {
    address: String,
    _server: Child,
}

impl RealModel {
    /// Starts it; `None` where it has not been set up.
    ///
    /// # Errors
    /// When it is there but does not start.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        let venv = profile_dir()
            .context("the build profile's directory")?
            .join("../real-model");
        if !venv.join("ready").exists() {
            return Ok(None);
        }
        let mut command = Command::new(venv.join("bin/python"));
        command.arg(root().join("tests/real_model/serve.py"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut server = command.spawn().context("the real model server")?;
        let mut lines = BufReader::new(server.stdout.take().context("its output")?).lines();
        let address = soon("the real model server listens", lines.next_line()).await??;
        let address = address.context("the real model server ended before it listened")?;
        Ok(Some(Self {
            address,
            _server: server,
        }))
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it writes a reply at the moment.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn is_busy(&self) -> anyhow::Result<bool> {
        let host = self.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).await?;
        let request = format!("GET /slots HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::ensure!(answer.contains("\"is_processing\""), "the server says {answer}");
        Ok(answer.contains("\"is_processing\":true"))
    }
}
