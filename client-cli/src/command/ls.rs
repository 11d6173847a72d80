//! `agentctl ls`: the sessions of this project, the newest use first.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use crate::values::{ending, short_length};
use protocol::Time;
use protocol::client::Client;
use protocol::method::{ListParams, SessionInfo, SessionList};

/// Most sessions of one page.
const PAGE: u32 = 200;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Sessions of all projects
    #[arg(short, long)]
    all: bool,
    /// At most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let cwd = (!arguments.all).then(|| invocation.cwd());
    let sessions = list(&mut client, cwd, arguments.limit).await?;
    if arguments.json {
        invocation.output.json(&sessions)?;
    } else {
        print(invocation, arguments.all, &sessions)?;
    }
    Ok(Exit::Completed)
}

async fn list(client: &mut Client, cwd: Option<String>, limit: u32) -> Result<Vec<SessionInfo>, Failure> {
    let mut sessions = Vec::new();
    let mut cursor = None;
    loop {
        let missing = limit.saturating_sub(u32::try_from(sessions.len()).unwrap_or(u32::MAX));
        if missing == 0 {
            return Ok(sessions);
        }
        let params = ListParams {
            cwd: cwd.clone(),
            limit: Some(missing.min(PAGE)),
            cursor,
        };
        let page = client.call::<SessionList>(&params).await?;
        sessions.extend(page.sessions);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(sessions);
        }
    }
}

fn print(invocation: &Invocation, all: bool, sessions: &[SessionInfo]) -> Result<(), Failure> {
    let output = &invocation.output;
    if sessions.is_empty() && output.on_terminal() {
        output.tell("no sessions here\nhint: `agentctl ls -a` lists those of all projects");
        return Ok(());
    }
    let head: &[&str] = if all {
        &["ID", "NAME", "STATE", "USED", "PROJECT", "TITLE"]
    } else {
        &["ID", "NAME", "STATE", "USED", "TITLE"]
    };
    let length = if output.on_terminal() {
        short_length(sessions.iter().map(|session| session.id.as_str()))
    } else {
        usize::MAX
    };
    let now = Time::now();
    let row = |session: &SessionInfo| {
        let shown = |text: &str| output.inline(text).into_owned();
        let mut row = vec![
            ending(session.id.as_str(), length).to_owned(),
            shown(session.name.as_deref().unwrap_or("-")),
            state(session),
            ago(now.ms_since(session.updated_at)),
        ];
        row.extend(all.then(|| shown(&session.root)));
        row.push(shown(session.title.as_deref().unwrap_or("-")));
        row
    };
    table::print(output, head, &sessions.iter().map(row).collect::<Vec<_>>())
}

/// What a person wants to know first: that it waits for them, else its phase, else how its last turn ended.
fn state(session: &SessionInfo) -> String {
    use protocol::event::TurnOutcome;
    use protocol::frame::Phase;
    if session.approvals > 0 {
        return "asks".to_owned();
    }
    match (session.phase, session.outcome) {
        (Phase::Idle, Some(TurnOutcome::Failed)) => "failed".to_owned(),
        (Phase::Idle, Some(TurnOutcome::Interrupted)) => "interrupted".to_owned(),
        (Phase::Idle, Some(TurnOutcome::TimedOut)) => "timed out".to_owned(),
        (Phase::Idle, Some(TurnOutcome::Unanswered)) => "unanswered".to_owned(),
        (phase, _) => phase.as_str().to_owned(),
    }
}

/// A time span in its largest unit.
pub(crate) fn ago(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::ago;

    #[test]
    fn spans_are_told_in_their_largest_unit() {
        assert_eq!(ago(999), "0s ago");
        assert_eq!(ago(61_000), "1m ago");
        assert_eq!(ago(7_200_000), "2h ago");
        assert_eq!(ago(172_800_000), "2d ago");
    }
}
