//! `agentctl approve`: allows what waits, once, for its session or from now on, as it is or as the person changed it. Also what `deny` shares with it: finding the approval and
//! answering the very request that was read.

use crate::command::approvals;
use crate::editor;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::{Found, by_id};
use protocol::Frame;
use protocol::client::Client;
use protocol::event::Choice;
use protocol::frame::ApprovalView;
use protocol::method::{AnswerParams, Answered, ApprovalAnswer, ApprovalList, ApprovalListParams};
use protocol::method::{AttachParams, SessionAttach};
use protocol::{ApprovalId, short, wording};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Approval by id or piece of an id; without it the only one that waits
    id: Option<String>,
    /// Allow what its rule covers for the whole session
    #[arg(long, conflicts_with = "always")]
    session: bool,
    /// The same, and write the rule that is shown into your rules
    #[arg(long)]
    always: bool,
    /// Change the call in your editor before it runs
    #[arg(long)]
    edit: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let decision = match (arguments.session, arguments.always) {
        (true, _) => Choice::Session,
        (_, true) => Choice::Always,
        _ => Choice::Once,
    };
    let with = if arguments.edit {
        With::Changes
    } else {
        With::Feedback(None)
    };
    answer(invocation, arguments.id.as_deref(), decision, with).await
}

/// What goes with an answer.
pub(super) enum With {
    /// What the model is told.
    Feedback(Option<String>),
    /// The call as the person leaves it in their editor.
    Changes,
}

/// Answers the approval that `id` names, or the only one that waits.
pub(super) async fn answer(
    invocation: &Invocation,
    id: Option<&str>,
    decision: Choice,
    with: With,
) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let waiting = client.call::<ApprovalList>(&ApprovalListParams::default()).await?;
    let Some(view) = find(&waiting, id)? else {
        let text = id.unwrap_or_default();
        let id = settled(&mut client, text).await?;
        return too_late(&mut client, id, decision).await;
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
    if decision == Choice::Always && wording::always_rule(view).is_none() {
        return Err(Failure::error(format!(
            "there is no rule that would always allow approval {0}\nhint: `agentctl approve {0}` allows it once",
            short(view.id.as_str())
        )));
    }
    let mut params = params(&view.id, &view.digest, decision, None);
    match with {
        With::Feedback(feedback) => params.feedback = feedback,
        With::Changes => params.arguments = Some(changed(invocation, view).await?),
    }
    let answered = client.call::<ApprovalAnswer>(&params).await?;
    invocation.output.tell(&told(&answered));
    Ok(Exit::Completed)
}

/// The call's arguments as the person leaves them: a command as its text, anything else as JSON.
async fn changed(invocation: &Invocation, view: &ApprovalView) -> Result<serde_json::Value, Failure> {
    let mut arguments = arguments_of(invocation, view).await?;
    if let Some(serde_json::Value::String(command)) = arguments.get_mut("command") {
        let text = editor::edited(&format!("{command}\n"), ".sh")?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        if *command == text {
            return Err(unchanged());
        }
        text.clone_into(command);
        return Ok(arguments);
    }
    let text = editor::edited(&format!("{arguments:#}\n"), ".json")?;
    let edited: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        Failure::error(format!(
            "what you left is no JSON: {error}\nhint: nothing was answered; try again"
        ))
    })?;
    if edited == arguments {
        Err(unchanged())
    } else {
        Ok(edited)
    }
}

fn unchanged() -> Failure {
    Failure::error(
        "nothing was changed, so nothing was answered\nhint: `agentctl approve` without --edit allows it as it is",
    )
}

/// The arguments as they stand now, from the session's snapshot.
async fn arguments_of(invocation: &Invocation, view: &ApprovalView) -> Result<serde_json::Value, Failure> {
    let params = AttachParams {
        session: view.session.0.clone(),
        ..AttachParams::default()
    };
    let mut frames = invocation.connect().await?.subscribe::<SessionAttach>(&params).await?;
    while let Some(frame) = frames.next().await {
        let Frame::Snapshot(snapshot) = frame? else { continue };
        let call = snapshot
            .calls
            .into_iter()
            .find(|call| Some(&call.call) == view.call.as_ref());
        return call
            .map(|call| call.arguments)
            .ok_or_else(|| Failure::error("this question is about no call that could be changed"));
    }
    Err(Failure::error("the session ended before it was shown"))
}

/// The approval among the last settled ones that is meant; a whole id may be of an earlier one.
async fn settled(client: &mut Client, text: &str) -> Result<ApprovalId, Failure> {
    if uuid::Uuid::parse_str(text).is_ok() {
        return Ok(ApprovalId(text.to_owned()));
    }
    let params = ApprovalListParams {
        settled: true,
        ..ApprovalListParams::default()
    };
    let settled = client.call::<ApprovalList>(&params).await?;
    match by_id(&settled, text, |view| view.id.as_str()) {
        Found::One(view) => Ok(view.id.clone()),
        Found::Several => Err(ambiguous(
            &settled,
            text,
            &format!("{text} names more than one approval that is settled"),
        )),
        Found::Nothing => Err(Failure::with(
            Exit::NotFound,
            format!("no approval {text} waits\nhint: `agentctl approvals` lists what does; name 4 characters or more"),
        )),
    }
}

/// The one that is meant. `None`: none that waits.
fn find<'a>(waiting: &'a [ApprovalView], id: Option<&str>) -> Result<Option<&'a ApprovalView>, Failure> {
    let Some(text) = id else {
        return match waiting {
            [] => Err(Failure::with(Exit::NotFound, "nothing waits for an answer")),
            [only] => Ok(Some(only)),
            several => Err(ambiguous(several, "", "more than one approval waits")),
        };
    };
    match by_id(waiting, text, |view| view.id.as_str()) {
        Found::One(view) => Ok(Some(view)),
        Found::Nothing => Ok(None),
        Found::Several => Err(ambiguous(
            waiting,
            text,
            &format!("{text} names more than one approval"),
        )),
    }
}

/// Names those that a piece of an id may mean.
fn ambiguous(all: &[ApprovalView], piece: &str, what: &str) -> Failure {
    let ids = all.iter().map(|view| view.id.as_str());
    let ids: Vec<&str> = ids.filter(|id| id.starts_with(piece) || id.ends_with(piece)).collect();
    Failure::with(Exit::NotFound, format!("{what}\nhint: name one of {}", ids.join(", ")))
}

/// The daemon knows whether there ever was such an approval, and who answered it.
async fn too_late(client: &mut Client, id: ApprovalId, decision: Choice) -> Result<Exit, Failure> {
    client.call::<ApprovalAnswer>(&params(&id, "", decision, None)).await?;
    Ok(Exit::Completed)
}

fn params(id: &ApprovalId, digest: &str, decision: Choice, feedback: Option<String>) -> AnswerParams {
    AnswerParams {
        id: id.clone(),
        digest: digest.to_owned(),
        decision,
        feedback,
        arguments: None,
    }
}

fn told(answered: &Answered) -> String {
    let what = match answered.decision {
        protocol::event::Resolution::Once => "allowed once",
        protocol::event::Resolution::Session => "allowed for this session",
        protocol::event::Resolution::Always => "allowed from now on; `agentctl rules list` shows the rule",
        protocol::event::Resolution::Edited => {
            "changed; it does more than was asked, so it is asked about anew: see `agentctl approvals`"
        }
        _ => "denied",
    };
    format!("{} {what}", short(answered.id.as_str()))
}
