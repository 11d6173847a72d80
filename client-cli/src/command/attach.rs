//! `agentctl attach`: the terminal UI. Also what `agentctl` alone does.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::AddedRoots;
use clap::CommandFactory;
use protocol::ErrorKind;
use protocol::client::ClientError;
use std::io::IsTerminal;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value = "last")]
    session: String,
    #[command(flatten)]
    roots: AddedRoots,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<ExitCode, Failure> {
    // Asked for first, so that a wrong name is told before the screen is touched.
    let session = invocation
        .session(&mut invocation.connect().await?, &arguments.session)
        .await?;
    open(invocation, Some(session.id.0), &arguments.roots).await
}

/// The last session of this project, or a new one; help where there is no terminal.
pub(super) async fn run_bare(invocation: &Invocation, roots: &AddedRoots) -> Result<ExitCode, Failure> {
    if !terminal() {
        let help = crate::arguments::Arguments::command().render_help();
        invocation.output.tell_always(&help.to_string());
        return Ok(Exit::Usage.into());
    }
    let session = match invocation.session(&mut invocation.connect().await?, "last").await {
        Ok(session) => Some(session.id.0),
        Err(Failure::Client(error)) if error.kind() == Some(ErrorKind::SessionNotFound) => None,
        Err(failure) => return Err(failure),
    };
    open(invocation, session, roots).await
}

/// Opens the terminal UI on a session; `None`: on a new one. Either way it works in `roots`, too.
pub(super) async fn open(
    invocation: &Invocation,
    session: Option<String>,
    roots: &AddedRoots,
) -> Result<ExitCode, Failure> {
    if !terminal() {
        return Err(Failure::usage(
            "this needs a terminal\nhint: `agentctl show` and `agentctl tail` print without one",
        ));
    }
    let base = invocation.new_session()?;
    let options = client_tui::Options {
        session,
        cwd: invocation.cwd.clone(),
        model: base.model,
        mode: base.mode,
        add_roots: invocation
            .directories(&roots.add_dir)?
            .into_iter()
            .map(Into::into)
            .collect(),
    };
    client_tui::run(options)
        .await
        .map_err(|error| match error.downcast::<ClientError>() {
            Ok(error) => error.into(),
            Err(error) => Failure::error(error.to_string()),
        })
}

fn terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}
