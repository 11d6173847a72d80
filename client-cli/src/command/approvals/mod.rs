//! `agentctl approvals`: the inbox, what waits for an answer over all sessions.

mod follow;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::display::{Form, display};
use protocol::frame::ApprovalView;
use protocol::method::{ApprovalList, ApprovalListParams};
use protocol::{short, wording};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only those of one session
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
    /// Go on with what comes; on a terminal ask for each
    #[arg(short, long)]
    follow: bool,
    /// Print one JSON array; with --follow an object a line
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = match &arguments.session {
        Some(session) => Some(invocation.session(&mut client, session).await?.id.0),
        None => None,
    };
    let params = ApprovalListParams {
        session,
        settled: false,
    };
    if arguments.follow {
        drop(client);
        return follow::run(invocation, arguments.json, params).await;
    }
    let approvals = client.call::<ApprovalList>(&params).await?;
    if arguments.json {
        invocation.output.json(&approvals)?;
    } else if approvals.is_empty() && invocation.output.on_terminal() {
        invocation.output.tell("nothing waits for an answer");
    } else {
        let texts: Vec<String> = approvals.iter().map(text).collect();
        invocation.output.write(&texts.join("\n"))?;
    }
    Ok(Exit::Completed)
}

/// An approval as people read it: whose it is, then the question.
pub(crate) fn text(approval: &ApprovalView) -> String {
    let lines = wording::approval_lines(approval)
        .into_iter()
        .map(|line| format!("  {line}\n"));
    std::iter::once(heading(approval) + "\n").chain(lines).collect()
}

/// Which approval of which session.
fn heading(approval: &ApprovalView) -> String {
    let session = match &approval.session_name {
        Some(name) => display(name, Form::Inline),
        None => short(approval.session.as_str()).into(),
    };
    format!("{}  session {session}", short(approval.id.as_str()))
}
