//! `agentctl tail`: a session's log, an event a line, from its beginning to its head and, with `-f`, on.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Deltas, Follow, News};
use crate::invocation::{Answers, Invocation, connect};
use crate::values::default_session;
use crate::words;
use protocol::client::Autostart;
use protocol::{Frame, Seq};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value_t = default_session())]
    session: String,
    /// Only the last N events
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u64>,
    /// Go on with what comes
    #[arg(short, long)]
    follow: bool,
    /// Print each event as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?;
    drop(client);
    let after = arguments.lines.map_or(0, |lines| session.head.0.saturating_sub(lines));
    let connect = connect(Answers::No, Autostart::Yes);
    let output = invocation.output;
    let mut follow = Follow::start(connect, session.id, Seq(after), Deltas::Unwanted).await?;
    loop {
        match follow.next().await? {
            News::Frame(Frame::Event(event)) if arguments.json => output.json(&event)?,
            News::Frame(Frame::Event(event)) => output.line(&words::line(&event))?,
            News::Frame(Frame::Snapshot(_)) if !arguments.follow => return Ok(Exit::Completed),
            News::Frame(_) => {}
            News::Lost(what) => output.tell(&output.dim(&format!("{what}; attaching again"))),
        }
    }
}
