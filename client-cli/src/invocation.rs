//! How the program was called: where the person stands, how they want to be told, and what every command needs from the daemon.

use crate::failure::Failure;
use crate::output::Output;
use crate::values::ModeWord;
use clap::ValueEnum;
use protocol::client::{Autostart, Client, Connect};
use protocol::display::{Form, display};
use protocol::method::{CreateParams, GetParams, SessionGet, SessionInfo};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// One call of the program.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    /// The person's directory, absolute.
    pub(crate) cwd: PathBuf,
    pub(crate) output: Output,
}

/// Whether a person can answer approvals through this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    Yes,
    No,
}

impl Invocation {
    /// Connects, starting a daemon if none runs.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let client = self.connect_silently().await?;
        self.warn(&client);
        Ok(client)
    }

    /// The same for a command that is about the configuration's mistakes itself.
    pub(crate) async fn connect_silently(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&connect(Answers::No, Autostart::Yes)).await?)
    }

    /// Says once what the daemon cannot read of its configuration.
    pub(crate) fn warn(&self, client: &Client) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        if let Some(fault) = &client.hello().config_fault
            && !TOLD.swap(true, Ordering::Relaxed)
        {
            let text = display(fault, Form::Block);
            self.output.tell(&format!(
                "warning: what the configuration said before still holds: {text}"
            ));
        }
    }

    /// Connects to a daemon that runs.
    pub(crate) async fn connect_to_running(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&connect(Answers::No, Autostart::No)).await?)
    }

    /// The person's directory as text for the protocol.
    pub(crate) fn cwd(&self) -> String {
        self.cwd.to_string_lossy().into_owned()
    }

    /// Directories a person named from where they stand, absolute.
    pub(crate) fn directories(&self, named: &[PathBuf]) -> Result<Vec<String>, Failure> {
        let text = |dir: &PathBuf| match self.cwd.join(dir).into_os_string().into_string() {
            Ok(text) => Ok(text),
            Err(_) => Err(Failure::usage(format!("the path {} is not UTF-8", dir.display()))),
        };
        named.iter().map(text).collect()
    }

    /// A new session here, with what the environment sets.
    pub(crate) fn new_session(&self) -> Result<CreateParams, Failure> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mode = |text: String| {
            ModeWord::from_str(&text, true)
                .map(Into::into)
                .map_err(|_| Failure::usage(format!("AGENTD_MODE is `{text}`\nhint: use ask, edits, all or none")))
        };
        Ok(CreateParams {
            cwd: self.cwd(),
            model: set("AGENTD_MODEL"),
            mode: set("AGENTD_MODE").map(mode).transpose()?,
            ..CreateParams::default()
        })
    }

    /// Finds the session that `text` names.
    pub(crate) async fn session(&self, client: &mut Client, text: &str) -> Result<SessionInfo, Failure> {
        let params = GetParams {
            session: text.to_owned(),
            cwd: Some(self.cwd()),
        };
        Ok(client.call::<SessionGet>(&params).await?)
    }
}

/// How this program presents itself.
pub(crate) fn connect(answers: Answers, autostart: Autostart) -> Connect {
    Connect {
        name: "agentctl".to_owned(),
        kind: "cli".to_owned(),
        answers: answers == Answers::Yes,
        autostart,
    }
}
