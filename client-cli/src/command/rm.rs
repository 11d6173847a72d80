//! `agentctl rm`: deletes a session.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::method::{DeleteParams, SessionDelete};
use protocol::short;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Interrupt a turn that runs, rather than refuse
    #[arg(short, long)]
    force: bool,
    /// Take the history away at once; else it is gone after 7 days
    #[arg(long)]
    now: bool,
    /// Sessions by id, piece of an id, or name
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    for text in &arguments.sessions {
        let session = invocation.session(&mut client, text).await?.id;
        let params = DeleteParams {
            session: session.0.clone(),
            force: arguments.force,
            now: arguments.now,
        };
        client.call::<SessionDelete>(&params).await?;
        invocation
            .output
            .tell(&format!("deleted session {}", short(session.as_str())));
    }
    Ok(Exit::Completed)
}
