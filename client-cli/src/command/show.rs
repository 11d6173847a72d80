//! `agentctl show`: a session's transcript, as the terminal UI shows it; plain where it is piped.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Deltas, Follow, News};
use crate::invocation::{Answers, Invocation, connect};
use crate::output::{Colour, Output, Reader};
use crate::table;
use crate::values::default_session;
use client_tui::Look;
use protocol::client::Autostart;
use protocol::{Envelope, Frame, Seq};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value_t = default_session())]
    session: String,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?;
    drop(client);
    let connect = connect(Answers::No, Autostart::Yes);
    let mut follow = Follow::start(connect, session.id, Seq(0), Deltas::Unwanted).await?;
    let mut events: Vec<Envelope> = Vec::new();
    loop {
        match follow.next().await? {
            News::Frame(Frame::Event(event)) => events.push(event),
            News::Frame(Frame::Snapshot(_)) => break,
            _ => {}
        }
    }
    let output = &invocation.output;
    let width = output
        .on_terminal()
        .then(|| u16::try_from(table::columns()).unwrap_or(u16::MAX));
    let lines = client_tui::transcript(&events, width, look(output));
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    output.write(&text)?;
    Ok(Exit::Completed)
}

fn look(output: &Output) -> Look {
    match (output.colours(output.stdout), output.stdout, output.colour) {
        (true, ..) => Look::Colour,
        // `NO_COLOR` is about colour alone.
        (false, Reader::Terminal, Colour::Auto) => Look::Marked,
        _ => Look::Plain,
    }
}
