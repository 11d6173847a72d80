//! `agentctl resume`: a parked turn goes on; on a terminal its session opens.

use crate::command::attach;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::AddedRoots;
use protocol::frame::Phase;
use protocol::method::{SessionParams, TurnResume};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value = "last")]
    session: String,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<ExitCode, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?;
    let parked = session.phase == Phase::Parked;
    if parked {
        let session = session.id.0.clone();
        client.call::<TurnResume>(&SessionParams { session }).await?;
    }
    drop(client);
    if invocation.output.on_terminal() {
        return attach::open(invocation, Some(session.id.0), &AddedRoots::default()).await;
    }
    if parked {
        return Ok(Exit::Completed.into());
    }
    Err(Failure::with(Exit::TooLate, "no turn of this session is parked"))
}
