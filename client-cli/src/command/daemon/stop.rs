//! `agentctl daemon stop`: ends the daemon and waits until its process is gone, so that a start right after finds the way free.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::LOOK_EVERY;
use crate::invocation::Invocation;
use protocol::client::ClientError;
use protocol::method::{DaemonStatus, DaemonStop, Empty, StopParams};
use rustix::process::{Pid, test_kill_process};
use std::time::{Duration, Instant};

/// What the daemon takes as drain if it is not told.
const DRAIN: Duration = Duration::from_secs(30);

/// How long the rest of a stop may take: tools are killed, the log is closed.
const CLOSE: Duration = Duration::from_secs(30);

pub(super) async fn run(invocation: &Invocation, drain_ms: Option<u64>) -> Result<Exit, Failure> {
    let mut client = invocation.connect_to_running().await?;
    let pid = client.call::<DaemonStatus>(&Empty {}).await?.pid;
    match client.call::<DaemonStop>(&StopParams { drain_ms }).await {
        // It may be gone before its answer is.
        Ok(_) | Err(ClientError::Lost) => {}
        Err(error) => return Err(error.into()),
    }
    let drain = drain_ms.map_or(DRAIN, Duration::from_millis);
    let give_up_at = Instant::now() + drain + CLOSE;
    while alive(pid) {
        if Instant::now() > give_up_at {
            return Err(Failure::error(format!(
                "agentd still runs, pid {pid}\nhint: see `agentctl daemon logs`"
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    invocation.output.tell("agentd stopped");
    Ok(Exit::Completed)
}

/// The same where it does not run, which is no error.
pub(super) async fn if_running(invocation: &Invocation, drain_ms: Option<u64>) -> Result<(), Failure> {
    match run(invocation, drain_ms).await {
        Ok(_) | Err(Failure::Client(ClientError::Unreachable { .. })) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Whether the process is there and is no zombie that nobody has collected.
fn alive(pid: u32) -> bool {
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let there = id.is_some_and(|id| test_kill_process(id).is_ok());
    let zombie = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    };
    there && !zombie()
}
