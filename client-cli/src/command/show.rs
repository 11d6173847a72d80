//! `agentctl show`: a session's transcript, as the terminal UI shows it; plain where it is piped.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Deltas, Follow};
use crate::invocation::{Answers, Invocation, connect};
use crate::words;
use protocol::client::Autostart;
use protocol::{Envelope, Frame, Seq};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value = "last")]
    session: String,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?;
    drop(client);
    let connect = connect(Answers::No, Autostart::Yes);
    let mut follow = Follow::start(connect, session.id, Seq(0), Deltas::Unwanted, invocation.output).await?;
    let mut events: Vec<Envelope> = Vec::new();
    loop {
        match follow.next().await? {
            Frame::Event(event) => events.push(event),
            Frame::Snapshot(_) => break,
            _ => {}
        }
    }
    let lines: Vec<String> = events.iter().map(words::line).collect();
    invocation.output.line(&lines.join("\n"))?;
    Ok(Exit::Completed)
}
