//! `agentctl rename`: gives a session a name it can be called by.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::method::{SessionUpdate, UpdateParams};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    session: String,
    /// Letters, digits, `.`, `_` and `-`, a letter first; at most 64
    name: String,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?;
    let params = UpdateParams {
        session: session.id.0,
        name: Some(arguments.name),
        ..UpdateParams::default()
    };
    client.call::<SessionUpdate>(&params).await?;
    Ok(Exit::Completed)
}
