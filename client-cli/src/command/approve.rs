//! `agentctl approve`: allows what waits, once or for its session. Also what `deny` shares with it: finding the approval and
//! answering the very request that was read.

use crate::command::approvals;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::{Found, by_id};
use protocol::client::Client;
use protocol::event::Choice;
use protocol::frame::ApprovalView;
use protocol::method::{AnswerParams, Answered, ApprovalAnswer, ApprovalList, ApprovalListParams};
use protocol::{ApprovalId, short, wording};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Approval by id or piece of an id; without it the only one that waits
    id: Option<String>,
    /// Allow what its rule covers for the whole session
    #[arg(long)]
    session: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let decision = if arguments.session {
        Choice::Session
    } else {
        Choice::Once
    };
    answer(invocation, arguments.id.as_deref(), decision, None).await
}

/// Answers the approval that `id` names, or the only one that waits.
pub(super) async fn answer(
    invocation: &Invocation,
    id: Option<&str>,
    decision: Choice,
    feedback: Option<String>,
) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let waiting = client.call::<ApprovalList>(&ApprovalListParams::default()).await?;
    let Some(view) = find(&waiting, id)? else {
        return too_late(&mut client, id.unwrap_or_default(), decision).await;
    };
    if id.is_none() {
        // Nobody named it, so what is answered must be seen.
        invocation.output.tell(approvals::text(view).trim_end());
    }
    if decision == Choice::Session && wording::session_rule(view).is_none() {
        return Err(Failure::error(format!(
            "approval {} cannot be given for the session\nhint: `agentctl approve {0}` allows it once",
            short(view.id.as_str())
        )));
    }
    let answered = client
        .call::<ApprovalAnswer>(&params(&view.id, &view.digest, decision, feedback))
        .await?;
    invocation.output.tell(&told(&answered));
    Ok(Exit::Completed)
}

/// The one that is meant. `None`: a whole id of none that waits.
fn find<'a>(waiting: &'a [ApprovalView], id: Option<&str>) -> Result<Option<&'a ApprovalView>, Failure> {
    let Some(text) = id else {
        return match waiting {
            [] => Err(Failure::with(Exit::NotFound, "nothing waits for an answer")),
            [only] => Ok(Some(only)),
            several => Err(ambiguous(several, "more than one approval waits")),
        };
    };
    match by_id(waiting, text, |view| view.id.as_str()) {
        Found::One(view) => Ok(Some(view)),
        Found::Nothing if uuid::Uuid::parse_str(text).is_ok() => Ok(None),
        Found::Nothing => Err(Failure::with(
            Exit::NotFound,
            format!("no approval {text} waits\nhint: `agentctl approvals` lists what does; name 4 characters or more"),
        )),
        Found::Several => Err(ambiguous(waiting, &format!("{text} names more than one approval"))),
    }
}

fn ambiguous(waiting: &[ApprovalView], what: &str) -> Failure {
    let ids: Vec<&str> = waiting.iter().map(|view| view.id.as_str()).collect();
    Failure::with(Exit::NotFound, format!("{what}\nhint: name one of {}", ids.join(", ")))
}

/// The daemon knows whether there ever was such an approval, and who answered it.
async fn too_late(client: &mut Client, id: &str, decision: Choice) -> Result<Exit, Failure> {
    client
        .call::<ApprovalAnswer>(&params(&ApprovalId(id.to_owned()), "", decision, None))
        .await?;
    Ok(Exit::Completed)
}

fn params(id: &ApprovalId, digest: &str, decision: Choice, feedback: Option<String>) -> AnswerParams {
    AnswerParams {
        id: id.clone(),
        digest: digest.to_owned(),
        decision,
        feedback,
    }
}

fn told(answered: &Answered) -> String {
    let what = match answered.decision {
        protocol::event::Resolution::Once => "allowed once",
        protocol::event::Resolution::Session => "allowed for this session",
        _ => "denied",
    };
    format!("{} {what}", short(answered.id.as_str()))
}
