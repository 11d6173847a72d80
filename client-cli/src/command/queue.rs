//! `agentctl queue`: the inputs that wait for their turn.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use crate::values::{Found, by_id, default_session};
use protocol::client::Client;
use protocol::frame::QueuedInput;
use protocol::method::{Queue, QueueCancel, QueueCancelParams, QueueList, QueueResume, SessionParams};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List what waits
    List {
        /// Session by id, piece of an id, name, or `last`
        #[arg(default_value_t = default_session())]
        session: String,
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Take an input out of the queue
    Cancel {
        /// Input by id or piece of an id; without it the only one that waits
        input: Option<String>,
        /// Session by id, piece of an id, name, or `last`
        #[arg(short, long, default_value_t = default_session())]
        session: String,
    },
    /// Let a queue go on that an interrupt holds
    Resume {
        /// Session by id, piece of an id, name, or `last`
        #[arg(default_value_t = default_session())]
        session: String,
    },
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    match arguments.action {
        Action::List { session, json } => {
            let params = find(invocation, &mut client, &session).await?;
            let queue = client.call::<QueueList>(&params).await?;
            if json {
                invocation.output.json(&queue.inputs)?;
            } else {
                print(invocation, &queue)?;
            }
        }
        Action::Cancel { input, session } => {
            let params = find(invocation, &mut client, &session).await?;
            let queue = client.call::<QueueList>(&params).await?;
            let input_id = pick(&queue.inputs, input.as_deref())?.input_id.clone();
            let session = params.session;
            client
                .call::<QueueCancel>(&QueueCancelParams { session, input_id })
                .await?;
        }
        Action::Resume { session } => {
            let params = find(invocation, &mut client, &session).await?;
            client.call::<QueueResume>(&params).await?;
        }
    }
    Ok(Exit::Completed)
}

async fn find(invocation: &Invocation, client: &mut Client, session: &str) -> Result<SessionParams, Failure> {
    let session = invocation.session(client, session).await?.id.0;
    Ok(SessionParams { session })
}

fn print(invocation: &Invocation, queue: &Queue) -> Result<(), Failure> {
    let output = &invocation.output;
    let rows = queue.inputs.iter().map(|input| {
        let how = if input.steer { "steers" } else { "waits" };
        let text = |text: &str| output.inline(text).into_owned();
        vec![
            text(input.input_id.as_str()),
            how.to_owned(),
            text(&input.by.to_string()),
            text(&input.text),
        ]
    });
    table::print(output, &["INPUT", "STATE", "BY", "TEXT"], &rows.collect::<Vec<_>>())?;
    if queue.held {
        output.tell("the queue is held since an interrupt\nhint: `agentctl queue resume` lets it go on");
    }
    Ok(())
}

fn pick<'a>(inputs: &'a [QueuedInput], text: Option<&str>) -> Result<&'a QueuedInput, Failure> {
    let hint = "hint: `agentctl queue list` shows what waits";
    let found = match (text, inputs) {
        (None, []) => Found::Nothing,
        (None, [only]) => Found::One(only),
        (None, _) => Found::Several,
        (Some(text), _) => by_id(inputs, text, |input| input.input_id.as_str()),
    };
    match found {
        Found::One(input) => Ok(input),
        Found::Nothing => Err(Failure::with(Exit::NotFound, format!("no such input waits\n{hint}"))),
        Found::Several => Err(Failure::with(
            Exit::NotFound,
            format!("more than one input waits\n{hint}; name one"),
        )),
    }
}
