//! `agentctl approvals`: the inbox, what waits for an answer over all sessions.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::display::{Form, display};
use protocol::frame::ApprovalView;
use protocol::method::{ApprovalList, ApprovalListParams, ApprovalWatch, WatchParams};
use protocol::{short, wording};
use std::collections::HashSet;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only those of one session
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
    /// Go on with what comes
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
    let params = ApprovalListParams { session };
    if arguments.follow {
        return follow(invocation, &arguments, &params).await;
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

/// The watch says that something changed; what waits is then asked for, so that nothing is shown that was answered meanwhile.
/// It begins before the first list, so that nothing falls between the two.
async fn follow(invocation: &Invocation, arguments: &Arguments, params: &ApprovalListParams) -> Result<Exit, Failure> {
    let watcher = invocation.connect().await?;
    let mut events = watcher.subscribe::<ApprovalWatch>(&WatchParams::default()).await?;
    let mut client = invocation.connect().await?;
    let mut shown = HashSet::new();
    loop {
        for approval in client.call::<ApprovalList>(params).await? {
            if shown.insert(approval.id.clone()) {
                print(invocation, arguments, &approval)?;
            }
        }
        match events.next().await {
            Some(event) => drop(event?),
            None => return Ok(Exit::Completed),
        }
    }
}

fn print(invocation: &Invocation, arguments: &Arguments, approval: &ApprovalView) -> Result<(), Failure> {
    if arguments.json {
        invocation.output.json(approval)
    } else {
        invocation.output.line(&text(approval))
    }
}

/// An approval as people read it: whose it is, then the question.
pub(super) fn text(approval: &ApprovalView) -> String {
    let session = match &approval.session_name {
        Some(name) => display(name, Form::Inline).into_owned(),
        None => short(approval.session.as_str()).to_owned(),
    };
    let mut lines = vec![format!("{}  session {session}", short(approval.id.as_str()))];
    lines.extend(
        wording::approval_lines(approval)
            .into_iter()
            .map(|line| format!("  {line}")),
    );
    lines.join("\n") + "\n"
}
