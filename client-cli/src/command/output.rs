//! `agentctl output`: the whole output of one tool call, or of a command in the background; as it came where it is piped.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Deltas, Follow, News};
use crate::invocation::{Answers, Invocation, connect};
use crate::values::default_session;
use crate::whole;
use protocol::client::{Autostart, Client};
use protocol::display::{Form, display};
use protocol::event::{BlobRef, Produced};
use protocol::{CallId, Event, Frame, JobId, Seq, SessionId};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Call or job by id, as `show` and `ps` name it, a piece of an id, or `last`: the last call of the session
    #[arg(value_name = "CALL")]
    call: String,
    /// Session by id, piece of an id, name, or `last`
    #[arg(short, long, value_name = "SESSION", default_value_t = default_session())]
    session: String,
}

/// A call, and what is known of its output.
#[derive(Debug)]
struct Known {
    call: CallId,
    /// None while it has not ended.
    ended: Option<Put>,
    job: Option<Job>,
}

/// The job a call's command went on as.
#[derive(Debug)]
struct Job {
    id: JobId,
    ended: Option<Put>,
}

/// What was put out.
#[derive(Debug)]
struct Put {
    output: String,
    produced: Option<Produced>,
    blob: Option<BlobRef>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?.id;
    let known = calls(&session).await?;
    let found = find(&known, &arguments.call)?;
    let put = match (&found.job, &found.ended) {
        (Some(Job { ended: Some(put), .. }), _) => put,
        (Some(job), Some(put)) => {
            let text = format!(
                "job {} still runs; this is what came before it went to the background",
                job.id
            );
            invocation
                .output
                .tell(&format!("note: {}", invocation.output.inline(&text)));
            put
        }
        (None, Some(put)) => put,
        (_, None) => {
            return Err(Failure::error(format!(
                "call {} has not ended yet\nhint: `agentctl attach` shows what it puts out",
                found.call
            )));
        }
    };
    print(invocation, &mut client, &session, put).await?;
    Ok(Exit::Completed)
}

/// The calls of a session in the order in which they were asked for.
async fn calls(session: &SessionId) -> Result<Vec<Known>, Failure> {
    let connect = connect(Answers::No, Autostart::Yes);
    let mut follow = Follow::start(connect, session.clone(), Seq(0), Deltas::Unwanted).await?;
    let mut known: Vec<Known> = Vec::new();
    loop {
        match follow.next().await? {
            News::Frame(Frame::Event(event)) => {
                if let Some(event) = event.event() {
                    note(&mut known, event);
                }
            }
            News::Frame(Frame::Snapshot(_)) => return Ok(known),
            _ => {}
        }
    }
}

fn note(known: &mut Vec<Known>, event: Event) {
    match event {
        Event::ToolRequested(call) => known.push(Known {
            call: call.call,
            ended: None,
            job: None,
        }),
        Event::ToolCompleted(done) => {
            if let Some(known) = known.iter_mut().find(|known| known.call == done.call) {
                known.job = done.job.map(|id| Job { id, ended: None });
                known.ended = Some(Put {
                    output: done.output,
                    produced: done.produced,
                    blob: done.blob,
                });
            }
        }
        Event::JobEnded(done) => {
            let job = known.iter_mut().filter_map(|known| known.job.as_mut());
            if let Some(job) = job.into_iter().find(|job| job.id == done.job) {
                job.ended = Some(Put {
                    output: done.output,
                    produced: done.produced,
                    blob: done.blob,
                });
            }
        }
        _ => {}
    }
}

fn find<'a>(known: &'a [Known], text: &str) -> Result<&'a Known, Failure> {
    let Some(last) = known.last() else {
        return Err(Failure::with(Exit::NotFound, "this session has no tool call yet"));
    };
    if text == "last" {
        return Ok(last);
    }
    let named = |known: &&Known, fits: &dyn Fn(&str) -> bool| {
        fits(known.call.as_str()) || known.job.as_ref().is_some_and(|job| fits(job.id.as_str()))
    };
    if let Some(known) = known.iter().find(|known| named(known, &|id| id == text)) {
        return Ok(known);
    }
    let fitting: Vec<&Known> = known
        .iter()
        .filter(|known| named(known, &|id| id.contains(text)))
        .collect();
    match fitting.as_slice() {
        [only] => Ok(only),
        [] => Err(Failure::with(
            Exit::NotFound,
            format!(
                "there is no call {text} in this session\nhint: `agentctl tail` lists them; the last is {}",
                last.call
            ),
        )),
        several => {
            let ids: Vec<&str> = several.iter().map(|known| known.call.as_str()).collect();
            Err(Failure::with(
                Exit::NotFound,
                format!(
                    "{text} names {} calls\nhint: type more of the id: {}",
                    ids.len(),
                    ids.join(", ")
                ),
            ))
        }
    }
}

async fn print(invocation: &Invocation, client: &mut Client, session: &SessionId, put: &Put) -> Result<(), Failure> {
    let output = &invocation.output;
    let mut ends_open = false;
    let mut page = |text: &str| {
        ends_open = text.chars().next_back().map_or(ends_open, |last| last != '\n');
        output.write(&output.block(text))
    };
    match &put.blob {
        Some(blob) => whole::read(client, session, blob, page).await?,
        None => {
            let produced = put.produced.and_then(|produced| produced.of(&put.output));
            page(produced.unwrap_or(&put.output))?;
        }
    }
    if ends_open && output.on_terminal() {
        output.line("")?;
    }
    if let Some(blob) = put.blob.as_ref().filter(|blob| blob.cut > 0) {
        let text = format!("note: {} bytes were cut from it before it was stored", blob.cut);
        output.tell(&display(&text, Form::Inline));
    }
    Ok(())
}
