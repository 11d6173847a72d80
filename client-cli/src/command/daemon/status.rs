//! `agentctl daemon status`: what runs and how it does. Exit code 7 where none runs.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::method::{DaemonStatus, DaemonStatusAnswer, Empty};

pub(super) async fn run(invocation: &Invocation, json: bool) -> Result<Exit, Failure> {
    let mut client = invocation.connect_to_running().await?;
    let status = client.call::<DaemonStatus>(&Empty {}).await?;
    if json {
        invocation.output.json(&status)?;
    } else {
        let lines: Vec<String> = lines(&status)
            .iter()
            .map(|(name, value)| format!("{name:<10} {value}\n"))
            .collect();
        invocation.output.write(&lines.concat())?;
    }
    Ok(Exit::Completed)
}

fn lines(status: &DaemonStatusAnswer) -> Vec<(&'static str, String)> {
    use protocol::display::{Form, display};
    let shown = |text: &str| display(text, Form::Inline).into_owned();
    let state = match (status.draining, status.storage_ok) {
        (true, _) => "stops, takes no new turn",
        (false, true) => "runs",
        (false, false) => "runs, but its log takes no writes: see `agentctl daemon logs`",
    };
    vec![
        ("state", state.to_owned()),
        (
            "version",
            shown(&format!("{}, protocol {}", status.version, status.protocol)),
        ),
        ("pid", status.pid.to_string()),
        ("socket", shown(&status.socket)),
        ("state dir", shown(&status.state_dir)),
        ("since", status.started_at.to_string()),
        ("clients", status.clients.to_string()),
        ("sessions", format!("{} open", status.sessions_open)),
        ("turns", format!("{} running", status.turns_running)),
        ("approvals", format!("{} waiting", status.approvals_pending)),
    ]
}
