//! `agentctl new`: makes a session without an input and prints its id.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::{AddedRoots, ModeFor, mode_for, unattended};
use protocol::method::{CreateParams, SessionCreate};
use protocol::{SessionId, Unattended};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Name to call it by
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Model profile, or PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What its turns ask before they act
    /// (ask, edits, all, none, or a time for which all is allowed)
    #[arg(long, alias = "approve", value_name = "MODE", value_parser = mode_for)]
    mode: Option<ModeFor>,
    /// What happens to approvals nobody can answer: wait, deny[:DURATION] or fail
    #[arg(long, value_name = "POLICY", value_parser = unattended)]
    unattended: Option<Unattended>,
    #[command(flatten)]
    roots: AddedRoots,
    /// Print the session as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let base = invocation.new_session()?;
    let params = CreateParams {
        session: Some(SessionId(uuid::Uuid::now_v7().to_string())),
        name: arguments.name,
        model: arguments.model.or(base.model),
        mode: arguments.mode.map(|mode| mode.mode).or(base.mode),
        mode_for_ms: arguments.mode.and_then(|mode| mode.for_ms),
        unattended: arguments.unattended,
        cwd: base.cwd,
        limits: base.limits,
        add_roots: invocation.directories(&arguments.roots.add_dir)?,
    };
    let session = invocation.connect().await?.call::<SessionCreate>(&params).await?;
    if arguments.json {
        invocation.output.json(&session)?;
    } else {
        invocation.output.line(session.id.as_str())?;
    }
    Ok(Exit::Completed)
}
