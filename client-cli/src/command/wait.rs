//! `agentctl wait`: until the turn that runs, or one input, has ended. Exit code and output are those of `send`.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::result;
use protocol::client::Client;
use protocol::event::TurnOutcome;
use protocol::method::{Empty, SessionInfo, TurnList, TurnWait, WaitParams};
use protocol::script::ResultLine;
use protocol::{InputId, short};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value = "last")]
    session: String,
    /// Wait for this input, as `send --no-wait` printed it
    #[arg(long, value_name = "ID")]
    input: Option<String>,
    /// Print the result as a line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let json = arguments.json;
    let result = wait(invocation, arguments).await;
    if let (true, Err(failure)) = (json, &result) {
        let known = ResultLine::new("error", Exit::Error.code());
        invocation.output.json(&result::failed(failure, known))?;
    }
    result
}

async fn wait(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?;
    let input_id = arguments.input.map(InputId);
    let turn = match &input_id {
        Some(_) => None,
        None => running(&mut client, &session).await?,
    };
    if turn.is_none() && input_id.is_none() {
        return over(invocation, arguments.json, &session);
    }
    let params = WaitParams {
        session: session.id.0.clone(),
        input_id,
        turn,
    };
    let result = client.call::<TurnWait>(&params).await?;
    let exit = Exit::of(&result);
    let output = &invocation.output;
    if !arguments.json {
        result::print_text(output, &result)?;
    }
    result::tell(output, &result);
    if arguments.json {
        output.json(&result::line(&result, params.input_id.as_ref(), exit))?;
    }
    Ok(exit)
}

async fn running(client: &mut Client, session: &SessionInfo) -> Result<Option<protocol::TurnId>, Failure> {
    let turns = client.call::<TurnList>(&Empty {}).await?;
    Ok(turns
        .into_iter()
        .find(|turn| turn.session == session.id)
        .map(|turn| turn.turn))
}

/// No turn runs: the last one's outcome, since the turn a script means may be over already.
fn over(invocation: &Invocation, json: bool, session: &SessionInfo) -> Result<Exit, Failure> {
    let id = short(session.id.as_str());
    let (exit, status) = match session.outcome {
        None => {
            return Err(Failure::with(
                Exit::NotFound,
                format!("session {id} has had no turn yet"),
            ));
        }
        Some(TurnOutcome::Completed) => (Exit::Completed, "completed"),
        Some(TurnOutcome::Failed) => (Exit::Failed, "failed"),
        Some(TurnOutcome::Interrupted) => (Exit::Interrupted, "interrupted"),
        Some(TurnOutcome::TimedOut) => (Exit::TimedOut, "timed_out"),
        Some(TurnOutcome::Unanswered) => (Exit::Unanswered, "unanswered"),
    };
    invocation
        .output
        .tell(&format!("no turn runs in session {id}; the last one: {status}"));
    if json {
        invocation.output.json(&ResultLine {
            session: Some(session.id.clone()),
            ..ResultLine::new(status, exit.code())
        })?;
    }
    Ok(exit)
}
