//! `agentctl daemon start`: a daemon runs afterwards; its socket and process id go to stdout.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::client::ClientError;
use protocol::method::{DaemonStatus, Empty};

pub(super) async fn run(invocation: &Invocation) -> Result<Exit, Failure> {
    let mut client = match invocation.connect_to_running().await {
        // Asked for in so many words, so whatever AGENTD_AUTOSTART says.
        Err(Failure::Client(ClientError::Unreachable { .. })) => {
            protocol::client::start().await?;
            invocation.connect_to_running().await?
        }
        result => result?,
    };
    let status = client.call::<DaemonStatus>(&Empty {}).await?;
    let line = format!("{} {}", status.socket, status.pid);
    invocation.output.line(&invocation.output.inline(&line))?;
    Ok(Exit::Completed)
}
