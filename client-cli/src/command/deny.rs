//! `agentctl deny`: refuses what waits; the text, if there is one, is what the model gets as the call's result.

use crate::command::approve;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::event::Choice;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Approval by id or piece of an id; without it the only one that waits
    id: Option<String>,
    /// Tell the model what to do instead
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    approve::answer(
        invocation,
        arguments.id.as_deref(),
        Choice::Deny,
        approve::With::Feedback(arguments.message),
    )
    .await
}
