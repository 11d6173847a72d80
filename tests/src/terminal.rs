//! Real terminals: a tmux server of its own, watched through its control mode, which says when a screen has changed.

use crate::daemon::Home;
use crate::soon;
use anyhow::{Context, ensure};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

/// A tmux server, ended when this is dropped.
#[derive(Debug)]
pub struct Terminals<'a> {
    home: &'a Home,
    socket: PathBuf,
    /// Says a line for whatever happens in any window.
    changes: Lines<BufReader<ChildStdout>>,
    /// Closing it would end the control client.
    _control: (Child, ChildStdin),
}

/// One terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal(String);

impl<'a> Terminals<'a> {
    /// Starts a server in `home`; `None` where tmux is not installed.
    ///
    /// # Errors
    /// When it is installed but does not start.
    pub async fn start(home: &'a Home) -> anyhow::Result<Option<Self>> {
        if home.command("tmux").arg("-V").output().await.is_err() {
            return Ok(None);
        }
        let socket = home.path().join("tmux");
        // The first window keeps the session alive; the sizes of the others are set one by one.
        let settings = [
            "set -g default-terminal tmux-256color",
            "set -g window-size manual",
            "set -g history-limit 20000",
            "set -g remain-on-exit on",
            "set -g status off",
        ];
        std::fs::write(home.path().join("tmux.conf"), settings.join("\n"))?;
        let conf = home.path().join("tmux.conf");
        let mut server = home.command("tmux");
        server.arg("-S").arg(&socket).arg("-u").arg("-f").arg(conf);
        server.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        server.args(["new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat"]);
        let started = server.output().await?;
        ensure!(
            started.status.success(),
            "tmux: {}",
            String::from_utf8_lossy(&started.stderr)
        );

        let mut control = home.command("tmux");
        control
            .arg("-S")
            .arg(&socket)
            .args(["-C", "attach", "-f", "ignore-size", "-t", "main"]);
        let mut control = control.stdin(Stdio::piped()).spawn()?;
        let input = control.stdin.take().context("the control client's input")?;
        let changes = BufReader::new(control.stdout.take().context("the control client's output")?).lines();
        Ok(Some(Self {
            home,
            socket,
            changes,
            _control: (control, input),
        }))
    }

    async fn tmux<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> anyhow::Result<String> {
        let mut command = self.home.command("tmux");
        command.arg("-S").arg(&self.socket).arg("-u").args(arguments);
        let output = soon("tmux answers", command.output()).await??;
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
        self.tmux(["set", "-g", "default-size", &format!("{columns}x{rows}")])
            .await?;
        let pane = self
            .tmux(["new-window", "-d", "-t", "main", "-P", "-F", "#{pane_id}", command])
            .await?;
        Ok(Terminal(pane.trim().to_owned()))
    }

    /// Presses keys, named as tmux names them: `Enter`, `C-c`, `y`.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn press(&self, terminal: &Terminal, keys: &[&str]) -> anyhow::Result<()> {
        let arguments = ["send-keys", "-t", &terminal.0].into_iter().chain(keys.iter().copied());
        self.tmux(arguments).await.map(drop)
    }

    /// Types text as it stands.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn write(&self, terminal: &Terminal, text: &str) -> anyhow::Result<()> {
        self.tmux(["send-keys", "-t", &terminal.0, "-l", text]).await.map(drop)
    }

    /// Scrollback and screen, wrapped lines as the terminal shows them.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn capture(&self, terminal: &Terminal) -> anyhow::Result<String> {
        self.tmux(["capture-pane", "-p", "-S", "-", "-t", &terminal.0]).await
    }

    /// The screen alone.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn screen(&self, terminal: &Terminal) -> anyhow::Result<String> {
        self.tmux(["capture-pane", "-p", "-t", &terminal.0]).await
    }

    /// Gives the terminal another size.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn resize(&self, terminal: &Terminal, columns: u16, rows: u16) -> anyhow::Result<()> {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(["resize-window", "-t", &terminal.0, "-x", &columns, "-y", &rows])
            .await
            .map(drop)
    }

    /// Closes the terminal as a click on its cross does.
    ///
    /// # Errors
    /// When tmux refuses.
    pub async fn close(&self, terminal: &Terminal) -> anyhow::Result<()> {
        self.tmux(["kill-window", "-t", &terminal.0]).await.map(drop)
    }

    /// Waits until scrollback and screen together are as `wanted` says, and gives them.
    ///
    /// # Errors
    /// When that does not come; the message has what is there instead.
    pub async fn until(
        &mut self,
        terminal: &Terminal,
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> anyhow::Result<String> {
        loop {
            let text = self.capture(terminal).await?;
            if wanted(&text) {
                return Ok(text);
            }
            let change = soon(what, self.changes.next_line()).await;
            let change = change.with_context(|| format!("the terminal shows:\n{}", text.trim_end()))?;
            change?.context("tmux ended")?;
        }
    }
}

impl Drop for Terminals<'_> {
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
