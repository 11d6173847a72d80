//! A real third-party OAuth server, `oidc-provider`, and a person with a browser, where `.ci/run` has set them up.

use crate::bins::root;
use crate::daemon::{Ran, run};
use crate::skip::profile_dir;
use crate::soon;
use anyhow::{Context, ensure};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The running server; it ends when this is dropped.
#[derive(Debug)]
pub struct OauthServer {
    address: String,
    _server: Child,
}

impl OauthServer {
    /// Starts it; `None` where it has not been set up.
    ///
    /// # Errors
    /// When it is there but does not start.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        let dir = profile_dir()
            .context("the build profile's directory")?
            .join("../oauth-server");
        if !dir.join("ready").exists() {
            return Ok(None);
        }
        let mut command = Command::new("node");
        command.arg(script("serve.mjs")).arg(dir.canonicalize()?);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut server = command.spawn().context("the OAuth server")?;
        let mut lines = BufReader::new(server.stdout.take().context("its output")?).lines();
        let address = soon("the OAuth server listens", lines.next_line()).await??;
        let address = address.context("the OAuth server ended before it listened")?;
        Ok(Some(Self {
            address,
            _server: server,
        }))
    }

    /// The `login` table of a profile whose tokens come from here.
    pub fn table(&self, profile: &str) -> String {
        let at = &self.address;
        format!(
            "[models.{profile}.login]\nclient_id = \"agentd-test\"\nauthorize_url = \"{at}/auth\"\ntoken_url = \"{at}/token\"\n\
             device_url = \"{at}/device/auth\"\nrevoke_url = \"{at}/token/revocation\"\nissuer = \"{at}\"\n\
             redirect = \"http://127.0.0.1/callback\"\nscopes = [\"openid\", \"offline_access\"]\n"
        )
    }

    /// Whether it takes an access token.
    ///
    /// # Errors
    /// When it answers neither yes nor no.
    pub async fn accepts(&self, token: &str) -> anyhow::Result<bool> {
        let host = self.address.strip_prefix("http://").context("its address")?;
        let mut stream = TcpStream::connect(host).await?;
        let request =
            format!("GET /me HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        soon("the OAuth server's answer", stream.read_to_string(&mut answer)).await??;
        ensure!(
            answer.starts_with("HTTP/1.1 200 ") || answer.starts_with("HTTP/1.1 401 "),
            "{answer}"
        );
        Ok(answer.starts_with("HTTP/1.1 200 "))
    }
}

/// A person opens `url` in a browser, does what the pages ask for, types `code` where one is wanted, and sees a last page.
///
/// # Errors
/// When a page is an error.
pub async fn browse(url: &str, code: Option<&str>) -> anyhow::Result<Ran> {
    let mut command = Command::new("node");
    command.arg(script("browser.mjs")).arg(url).args(code);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    run(command, "the browser").await?.ok()
}

fn script(name: &str) -> std::path::PathBuf {
    root().join("tests/oauth_server").join(name)
}
