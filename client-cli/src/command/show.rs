//! `agentctl show`: a session's transcript, as the terminal UI shows it; plain where it is piped. With -v also arguments and what
//! the model saw of results, with -vv the whole results.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Deltas, Follow, News};
use crate::invocation::{Answers, Invocation, connect};
use crate::output::{Colour, Output, Reader, Verbosity};
use crate::values::default_session;
use crate::{table, whole};
use client_tui::{Detail, Look, Transcript};
use protocol::client::{Autostart, Client};
use protocol::event::BlobRef;
use protocol::{Envelope, ErrorKind, Event, Frame, Seq, SessionId};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value_t = default_session())]
    session: String,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?.id;
    let connect = connect(Answers::No, Autostart::Yes);
    let mut follow = Follow::start(connect, session.clone(), Seq(0), Deltas::Unwanted).await?;
    let output = &invocation.output;
    let width = output
        .on_terminal()
        .then(|| u16::try_from(table::columns()).unwrap_or(u16::MAX));
    let detail = if output.verbosity >= Verbosity::Verbose {
        Detail::Full
    } else {
        Detail::Brief
    };
    let mut transcript = Transcript::new(width, look(output), detail);
    loop {
        match follow.next().await? {
            News::Frame(Frame::Event(event)) => {
                let whole = match blob(&event).filter(|_| output.verbosity >= Verbosity::Everything) {
                    Some(blob) => whole_text(&mut client, &session, &blob).await?,
                    None => None,
                };
                print(output, &transcript.event(&event, whole.as_deref()))?;
            }
            News::Frame(Frame::Snapshot(_)) => break,
            _ => {}
        }
    }
    print(output, &transcript.end())?;
    Ok(Exit::Completed)
}

fn print(output: &Output, lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    output.write(&text)
}

/// The blob that an event names.
fn blob(event: &Envelope) -> Option<BlobRef> {
    match event.event()? {
        Event::ToolCompleted(done) => done.blob,
        Event::JobEnded(done) => done.blob,
        _ => None,
    }
}

/// All of an output. One that is not there any more is no reason to show nothing of the session.
async fn whole_text(client: &mut Client, session: &SessionId, blob: &BlobRef) -> Result<Option<String>, Failure> {
    let mut text = String::new();
    let read = whole::read(client, session, blob, |page| {
        text.push_str(page);
        Ok(())
    });
    match read.await {
        Ok(()) => Ok(Some(text)),
        Err(Failure::Client(error)) if error.kind() == Some(ErrorKind::BlobNotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn look(output: &Output) -> Look {
    match (output.colours(output.stdout), output.stdout, output.colour) {
        (true, ..) => Look::Colour,
        // `NO_COLOR` is about colour alone.
        (false, Reader::Terminal, Colour::Auto) => Look::Marked,
        _ => Look::Plain,
    }
}
