//! Real terminals: each a tmux server of its own, watched through its control mode, which says when a screen has changed. One server
//! for several terminals is what tmux 3.3a does not bear: it may die when a session is made while another one is watched.

use crate::daemon::Home;
use crate::soon;
use anyhow::{Context, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Opens terminals in a home.
#[derive(Debug)]
pub struct Terminals<'a> {
    home: &'a Home,
    opened: AtomicU32,
}

/// One terminal.
#[derive(Debug)]
pub struct Terminal {
    /// Where its server listens; the server ends when this is dropped.
    socket: PathBuf,
    /// Its pane, by which tmux knows session and window too.
    pane: String,
    /// Says a line for whatever happens in it.
    changes: Lines<BufReader<ChildStdout>>,
    /// The client that says so; closing its input would end it.
    _control: (Child, ChildStdin),
}

impl<'a> Terminals<'a> {
    /// Starts a server in `home`; `None` where tmux is not installed.
    ///
    /// # Errors
    /// When it is installed but does not start.
    pub async fn start(home: &'a Home) -> anyhow::Result<Option<Self>> {
        if home.command("tmux").arg("-V").output().await.is_err() {
            return Ok(None);
        }
        let settings = [
            "set -g default-terminal tmux-256color",
            "set -g history-limit 20000",
            "set -g remain-on-exit on",
            "set -g status off",
        ];
        std::fs::write(home.path().join("tmux.conf"), settings.join("\n"))?;
        Ok(Some(Self {
            home,
            opened: AtomicU32::new(0),
        }))
    }

    fn client(&self, socket: &Path) -> Command {
        let mut client = self.home.command("tmux");
        client
            .arg("-S")
            .arg(socket)
            .arg("-u")
            .arg("-f")
            .arg(self.home.path().join("tmux.conf"));
        client.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        client
    }

    async fn tmux<S: AsRef<OsStr>>(
        &self,
        socket: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> anyhow::Result<String> {
        let output = soon("tmux answers", self.client(socket).args(arguments).output()).await??;
        ensure!(
            output.status.success(),
            "tmux: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A new terminal of this size that runs `command`, a shell line.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn open(&self, command: &str, columns: u16, rows: u16) -> anyhow::Result<Terminal> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let socket = self.home.path().join(format!("tmux{number}"));
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let opened = [
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-P",
            "-F",
            "#{pane_id}",
            command,
        ];
        let pane = self.tmux(&socket, opened).await?.trim().to_owned();
        let mut control = self.client(&socket);
        control
            .args(["-C", "attach", "-f", "ignore-size", "-t", &pane])
            .stdin(Stdio::piped());
        let mut control = control.spawn()?;
        let input = control.stdin.take().context("the control client's input")?;
        let changes = BufReader::new(control.stdout.take().context("the control client's output")?).lines();
        Ok(Terminal {
            socket,
            pane,
            changes,
            _control: (control, input),
        })
    }

    /// Presses keys, named as tmux names them: `Enter`, `C-c`, `y`.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn press(&self, terminal: &Terminal, keys: &[&str]) -> anyhow::Result<()> {
        let arguments = ["send-keys", "-t", &terminal.pane]
            .into_iter()
            .chain(keys.iter().copied());
        self.tmux(&terminal.socket, arguments).await.map(drop)
    }

    /// Types text as it stands.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn write(&self, terminal: &Terminal, text: &str) -> anyhow::Result<()> {
        self.tmux(&terminal.socket, ["send-keys", "-t", &terminal.pane, "-l", text])
            .await
            .map(drop)
    }

    /// Scrollback and screen, wrapped lines as the terminal shows them.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn capture(&self, terminal: &Terminal) -> anyhow::Result<String> {
        self.tmux(
            &terminal.socket,
            ["capture-pane", "-p", "-S", "-", "-t", &terminal.pane],
        )
        .await
    }

    /// The screen alone.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn screen(&self, terminal: &Terminal) -> anyhow::Result<String> {
        self.tmux(&terminal.socket, ["capture-pane", "-p", "-t", &terminal.pane])
            .await
    }

    /// Gives the terminal another size.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn resize(&self, terminal: &Terminal, columns: u16, rows: u16) -> anyhow::Result<()> {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(
            &terminal.socket,
            ["resize-window", "-t", &terminal.pane, "-x", &columns, "-y", &rows],
        )
        .await
        .map(drop)
    }

    /// Closes the terminal as a click on its cross does.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn close(&self, terminal: &Terminal) -> anyhow::Result<()> {
        self.tmux(&terminal.socket, ["kill-server"]).await.map(drop)
    }

    /// Waits until scrollback and screen together are as `wanted` says, and gives them.
    ///
    /// # Errors
    /// When that does not come; the message has what is there instead.
    pub async fn until(
        &self,
        terminal: &mut Terminal,
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> anyhow::Result<String> {
        let mut shown = String::new();
        let waited = soon(what, async {
            loop {
                shown = self.capture(terminal).await?;
                if wanted(&shown) {
                    return anyhow::Ok(());
                }
                terminal.changes.next_line().await?.context("tmux ended")?;
            }
        });
        waited
            .await
            .and_then(|found| found)
            .with_context(|| format!("the terminal shows:\n{}", shown.trim_end()))?;
        Ok(shown)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut end = std::process::Command::new("tmux");
        let _ = end
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}
