//! `agentctl schema`: the protocol as JSON Schema, one document.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) async fn run(invocation: &Invocation, Arguments {}: Arguments) -> Result<Exit, Failure> {
    invocation.output.write(&protocol::schema::text())?;
    Ok(Exit::Completed)
}
