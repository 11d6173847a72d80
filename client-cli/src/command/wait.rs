//! `agentctl wait`: until the turn that runs, or one input, has ended; where none runs, how the last one did. Exit code and output are those of `send`.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::result;
use crate::values::default_session;
use protocol::client::Client;
use protocol::method::{AttachParams, Empty, SessionAttach, SessionInfo, TurnList, TurnWait, WaitParams};
use protocol::script::ResultLine;
use protocol::{Event, Frame, InputId, TurnId, short};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value_t = default_session())]
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
    let turn = match (&input_id, running(&mut client, &session).await?) {
        (Some(_), _) => None,
        (None, Some(turn)) => Some(turn),
        // The turn a script means may be over already.
        (None, None) => Some(last(invocation, &session).await?),
    };
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

async fn running(client: &mut Client, session: &SessionInfo) -> Result<Option<TurnId>, Failure> {
    let turns = client.call::<TurnList>(&Empty {}).await?;
    Ok(turns
        .into_iter()
        .find(|turn| turn.session == session.id)
        .map(|turn| turn.turn))
}

/// The session's last turn, from the end of its log.
async fn last(invocation: &Invocation, session: &SessionInfo) -> Result<TurnId, Failure> {
    let params = AttachParams {
        session: session.id.0.clone(),
        after_seq: None,
        tail: Some(1),
        deltas: false,
    };
    let mut frames = invocation.connect().await?.subscribe::<SessionAttach>(&params).await?;
    let mut turn = None;
    while let Some(frame) = frames.next().await {
        match frame? {
            Frame::Event(event) => {
                if let Some(Event::TurnStarted(started)) = event.event() {
                    turn = Some(started.turn);
                }
            }
            Frame::Snapshot(_) => break,
            _ => {}
        }
    }
    turn.ok_or_else(|| {
        let id = short(session.id.as_str());
        Failure::with(Exit::NotFound, format!("session {id} has had no turn yet"))
    })
}
