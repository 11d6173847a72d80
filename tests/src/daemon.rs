//! A real daemon in a home of its own, started the way people start it, with a bare environment.

use crate::bins::bins;
use crate::log::{self, Logged};
use crate::model_server::{ModelServer, Wire};
use crate::process::{self, Process};
use crate::socket::{self, Peer};
use crate::soon;
use anyhow::{Context, ensure};
use protocol::place::LockFile;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The variable that names a directory for homes that must not be in a temporary one. Its path is short.
pub const APART: &str = "AGENTD_TEST_HOMES";

/// A home directory with a project in it, in a short path because a socket's path is bounded.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
    environment: Vec<(String, String)>,
}

impl Home {
    /// A home without a config file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> anyhow::Result<Self> {
        Self::below(Path::new("/tmp"))
    }

    /// A home that is not in a temporary directory, which sandboxed commands may write; none where there is no such place.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn apart() -> anyhow::Result<Option<Self>> {
        let place = std::env::var_os(APART).map_or_else(|| PathBuf::from("/srv"), PathBuf::from);
        let writable = rustix::fs::access(&place, rustix::fs::Access::WRITE_OK).is_ok();
        writable.then(|| Self::below(&place)).transpose()
    }

    fn below(place: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("ad-").tempdir_in(place)?;
        let home = Self {
            dir,
            environment: Vec::new(),
        };
        std::fs::create_dir_all(home.project())?;
        std::fs::write(home.project().join("README.md"), "# A project\n\nIt counts to three.\n")?;
        Ok(home)
    }

    /// Sets a variable for every program started here.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Writes the config file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn config(self, text: &str) -> anyhow::Result<Self> {
        let file = self.config_file();
        std::fs::create_dir_all(file.parent().context("the config file's directory")?)?;
        std::fs::write(file, text)?;
        Ok(self)
    }

    /// Writes a config file whose default model is the scripted server, spoken to by `wire`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn model(self, server: &ModelServer, wire: Wire) -> anyhow::Result<Self> {
        self.config(&profile(server, wire))
    }

    /// The home directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory that clients stand in.
    pub fn project(&self) -> PathBuf {
        self.path().join("p")
    }

    /// The config file's path.
    pub fn config_file(&self) -> PathBuf {
        self.path().join(".config/agentd/config.toml")
    }

    /// The daemon's state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.path().join(".local/state/agentd")
    }

    /// A program in the project's directory, with nothing in its environment but the home and a path.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.project()).env_clear();
        command
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs `agentctl` to its end.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn ctl(&self, arguments: &[&str]) -> anyhow::Result<Ran> {
        let mut command = self.command(bins()?.agentctl());
        command.args(arguments);
        run(command, &format!("agentctl {}", arguments.join(" "))).await
    }

    /// What a live daemon's lock file says.
    ///
    /// # Errors
    /// When there is none.
    pub fn lock(&self) -> anyhow::Result<LockFile> {
        let path = LockFile::path(&self.state_dir());
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        LockFile::parse(&text).with_context(|| format!("the lock file says {text:?}"))
    }

    /// Starts the daemon.
    ///
    /// # Errors
    /// When it does not start; the message has what it said.
    pub async fn start(self) -> anyhow::Result<TestDaemon> {
        let daemon = TestDaemon { home: self };
        daemon.start().await?;
        Ok(daemon)
    }
}

/// The config of one profile, `scripted`, that is the default.
pub fn profile(server: &ModelServer, wire: Wire) -> String {
    let (wire_name, base_url) = (wire.name(), server.base_url(wire));
    format!(
        "default_model = \"scripted\"\n[models.scripted]\nwire = \"{wire_name}\"\nbase_url = \"{base_url}\"\n\
         model = \"scripted-1\"\napi_key = \"a-test-key\"\ncontext_tokens = 200000\n"
    )
}

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Itself, if it ended with 0.
    ///
    /// # Errors
    /// When it did not; the message has what it said.
    pub fn ok(self) -> anyhow::Result<Self> {
        ensure!(
            self.code == Some(0),
            "it ended with {:?}\nstdout: {}\nstderr: {}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self)
    }

    /// Its standard output as JSON.
    ///
    /// # Errors
    /// When it is none.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.stdout).with_context(|| format!("stdout: {}\nstderr: {}", self.stdout, self.stderr))
    }
}

/// Runs a program to its end.
///
/// # Errors
/// When it does not end.
pub async fn run(mut command: Command, what: &str) -> anyhow::Result<Ran> {
    ended(command.spawn().with_context(|| what.to_owned())?, what).await
}

/// Waits for a program's end.
///
/// # Errors
/// When it does not come.
pub async fn ended(child: Child, what: &str) -> anyhow::Result<Ran> {
    let output = soon(&format!("{what} ends"), child.wait_with_output()).await??;
    Ok(Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// A home whose daemon runs, until it is dropped.
#[derive(Debug)]
pub struct TestDaemon {
    pub home: Home,
}

impl TestDaemon {
    /// A daemon whose default model is the scripted server.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn with_model(server: &ModelServer, wire: Wire) -> anyhow::Result<Self> {
        Home::new()?.model(server, wire)?.start().await
    }

    /// Starts the daemon again after its end.
    ///
    /// # Errors
    /// When it does not start; the message has what it said.
    pub async fn start(&self) -> anyhow::Result<()> {
        let mut command = self.home.command(bins()?.agentd());
        command.arg("start");
        run(command, "agentd start").await?.ok()?;
        Ok(())
    }

    /// Its process.
    ///
    /// # Errors
    /// When no daemon runs.
    pub fn pid(&self) -> anyhow::Result<i32> {
        Ok(self.home.lock()?.pid)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When no daemon runs.
    pub fn socket(&self) -> anyhow::Result<PathBuf> {
        Ok(self.home.lock()?.socket)
    }

    /// The token that makes a client a controller.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn token(&self) -> anyhow::Result<String> {
        Ok(
            std::fs::read_to_string(protocol::place::token_file(&self.home.state_dir()))?
                .trim()
                .to_owned(),
        )
    }

    /// Kills it as a crash would and waits until it is gone. Gives what ran below it at that moment, for which it is
    /// stopped first.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn kill9(&self) -> anyhow::Result<Vec<Process>> {
        let pid = self.pid()?;
        process::signal(pid, Signal::STOP)?;
        let below = process::descendants(pid);
        process::end(pid, Signal::KILL).await?;
        Ok(below)
    }

    /// Runs `agentctl` to its end.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn ctl(&self, arguments: &[&str]) -> anyhow::Result<Ran> {
        self.home.ctl(arguments).await
    }

    /// Begins an `agentctl` that goes on beside the test.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin_ctl(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        let mut command = self.home.command(bins()?.agentctl());
        Ok(command.args(arguments).spawn()?)
    }

    /// A controller on a connection of its own.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn controller(&self) -> anyhow::Result<Peer> {
        let mut peer = Peer::connect(&self.socket()?).await?;
        peer.hello("test", Some(&self.token()?)).await?;
        Ok(peer)
    }

    /// Someone who watches, without a token.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn observer(&self) -> anyhow::Result<Peer> {
        Peer::connect(&self.socket()?).await
    }

    /// Makes a session in the project, in `mode`; its id.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn session(&self, mode: &str) -> anyhow::Result<String> {
        let params = json!({"cwd": self.home.project(), "mode": mode});
        let session = self.controller().await?.call("session.create", params).await?;
        Ok(session["id"].as_str().context("the session's id")?.to_owned())
    }

    /// Sends a text as an input; the answer.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn send(&self, session: &str, text: &str) -> anyhow::Result<Value> {
        let params = json!({"session": session, "content": [{"type": "text", "text": text}]});
        self.controller().await?.call("session.send", params).await
    }

    /// Waits until the session's log has an event that `wanted` accepts, and gives all its events up to that one.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn until(
        &self,
        session: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Vec<Value>> {
        let mut peer = self.observer().await?;
        peer.attach(session, Some(0)).await?;
        let frames = peer
            .until(what, |frame| frame.get("seq").is_some() && wanted(frame))
            .await?;
        Ok(frames.into_iter().filter(|frame| frame.get("seq").is_some()).collect())
    }

    /// Waits for the end of the session's `count`-th turn; its `turn.completed`.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn turn_end(&self, session: &str, count: usize) -> anyhow::Result<Value> {
        let ends = std::cell::Cell::new(0);
        let what = format!("the end of turn {count}");
        let frames = self.until(session, &what, |frame| {
            ends.set(ends.get() + usize::from(socket::is(frame, "turn.completed")));
            ends.get() >= count
        });
        Ok(socket::last(&frames.await?)?.clone())
    }

    /// Waits until an approval waits; it, as `approval.list` shows it.
    ///
    /// # Errors
    /// When none comes.
    pub async fn approval(&self, session: &str) -> anyhow::Result<Value> {
        let mut peer = self.observer().await?;
        peer.attach(session, None).await?;
        let asked = |frame: &Value| match frame["kind"].as_str() {
            Some("snapshot") => frame["approvals"].get(0).is_some(),
            kind => kind == Some("approval.requested"),
        };
        peer.until("an approval", asked).await?;
        let list = self
            .observer()
            .await?
            .call("approval.list", json!({"session": session}))
            .await?;
        list.get(0).cloned().context("the approval that was requested")
    }

    /// Answers an approval.
    ///
    /// # Errors
    /// When the answer is refused.
    pub async fn answer(&self, approval: &Value, decision: &str) -> anyhow::Result<Value> {
        let params = json!({"id": approval["id"], "digest": approval["digest"], "decision": decision});
        self.controller().await?.call("approval.answer", params).await
    }

    /// The session's log as it is on disk.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log(&self, session: &str) -> anyhow::Result<Vec<Logged>> {
        log::events(&self.home.state_dir(), session)
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        // The lock file outlives a daemon that crashed, and its pid may be another's by now.
        let daemon = self.pid().ok().and_then(process::find);
        if let Some(daemon) = daemon.filter(|daemon| daemon.command.contains("agentd")) {
            let _ = process::signal(daemon.pid, Signal::KILL);
        }
    }
}
