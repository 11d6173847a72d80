//! `agentctl send`: an input, and the wait for its answer. stdout gets the answer's text and a newline, or JSON lines;
//! everything else goes to stderr.

mod asking;
mod deliver;
mod input;
mod local;
mod shown;
mod turn;

use crate::ask::Tty;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::Deltas;
use crate::invocation::{Answers, Invocation, connect};
use crate::output::{Output, Reader};
use crate::result;
use crate::signals::Signals;
use crate::values::{AddedRoots, ModeFor, duration_ms, mode_for, unattended};
use deliver::Delivered;
use protocol::client::{Autostart, Connect};
use protocol::event::{Delivery, Disposition};
use protocol::method::Sent;
use protocol::script::ResultLine;
use protocol::{SessionId, Unattended, UnattendedPolicy};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 completed, 1 error before a turn, 2 usage, 3 failed, 4 nobody could answer, 5 interrupted, \
6 timeout, 7 no daemon, 8 no such session, 9 too late, 130 Ctrl-C"
)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`; without -s and -c a new one
    #[arg(short, long, value_name = "SESSION", group = "which")]
    session: Option<String>,
    /// The last session of this project
    #[arg(short, long = "continue", group = "which")]
    continue_last: bool,
    /// A new session, also where AGENTD_SESSION is set
    #[arg(long, group = "which")]
    new: bool,
    /// Name of the new session
    #[arg(long, value_name = "NAME", conflicts_with_all = ["session", "continue_last"])]
    name: Option<String>,
    /// Model profile, or PROVIDER/MODEL; on an existing session from its next turn on
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What the turn asks before it acts
    /// (ask, edits, all, none, or a time for which all is allowed)
    #[arg(long, alias = "approve", value_name = "MODE", value_parser = mode_for)]
    mode: Option<ModeFor>,
    #[command(flatten)]
    roots: AddedRoots,
    /// Join the turn that runs
    #[arg(long, group = "delivery")]
    steer: bool,
    /// Wait for a turn of its own (the default)
    #[arg(long, group = "delivery")]
    queue: bool,
    /// End the turn that runs and start the next
    #[arg(long, group = "delivery")]
    interrupt: bool,
    /// Print session and input id as soon as the input is stored
    #[arg(long)]
    no_wait: bool,
    /// Longest time of the turn, such as 10m; waiting for people does not count
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    timeout: Option<u64>,
    /// What happens to approvals nobody can answer: wait, deny[:DURATION] or fail
    #[arg(long, value_name = "POLICY", value_parser = unattended)]
    unattended: Option<Unattended>,
    /// Tools the turn may use, such as `read_file,grep`; `agentctl tools` lists them
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',', group = "offered")]
    tools: Option<Vec<String>>,
    /// No tools at all
    #[arg(long, group = "offered")]
    no_tools: bool,
    /// Print a frame a line, last a result
    #[arg(long)]
    json: bool,
    /// With --json: also pieces of text as they come
    #[arg(long, requires = "json")]
    deltas: bool,
    /// Add an image
    #[arg(short, long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// Add what stdin holds, as `-` does
    #[arg(long)]
    stdin: bool,
    /// The text; `-` stands for stdin
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
}

impl Arguments {
    fn delivery(&self) -> Delivery {
        match (self.steer, self.interrupt) {
            (true, _) => Delivery::Steer,
            (_, true) => Delivery::Interrupt,
            _ => Delivery::Queue,
        }
    }

    /// The tools that are named; none: all that are offered.
    fn tools(&self) -> Option<Vec<String>> {
        if self.no_tools {
            Some(Vec::new())
        } else {
            self.tools.clone()
        }
    }

    /// Whether the answer is wanted piece by piece.
    fn deltas(&self, output: &Output) -> Deltas {
        if self.deltas || (output.on_terminal() && !self.json) {
            Deltas::Wanted
        } else {
            Deltas::Unwanted
        }
    }

    /// A waiting send that nobody can be asked through must come to an end.
    fn unattended(&self, tty: Option<&Tty>) -> Unattended {
        let alone = tty.is_none() && !self.no_wait;
        let default = if alone {
            UnattendedPolicy::Deny
        } else {
            UnattendedPolicy::Wait
        };
        self.unattended.unwrap_or(Unattended::new(default))
    }
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let json = arguments.json;
    let mut known = ResultLine::new("error", Exit::Error.code());
    let result = Box::pin(send(invocation, arguments, &mut known)).await;
    if let (true, Err(failure)) = (json, &result) {
        invocation.output.json(&result::failed(failure, known))?;
    }
    result
}

/// `known` gets what the result line says of an input that is durable, whatever happens afterwards.
async fn send(invocation: &Invocation, arguments: Arguments, known: &mut ResultLine) -> Result<Exit, Failure> {
    let output = &invocation.output;
    let content = input::content(&arguments.text, arguments.stdin, &arguments.image)?;
    let tty = (!arguments.no_wait && output.stderr == Reader::Terminal)
        .then(Tty::open)
        .flatten();
    let answers = if tty.is_some() { Answers::Yes } else { Answers::No };
    let connect: Connect = connect(answers, Autostart::Yes);
    let plan = deliver::Plan::new(invocation, &arguments, content, tty.as_ref())?;
    if arguments.no_wait {
        let Delivered { session, sent, .. } = deliver::deliver(invocation, &connect, plan).await?;
        note(known, &session.id, &sent);
        return accepted(invocation, &arguments, &sent, known);
    }
    // From the moment the input may be durable, Ctrl-C has to interrupt its turn and not just to leave it running.
    let mut signals = Signals::new()?;
    let delivered = match Box::pin(signals.during(deliver::deliver(invocation, &connect, plan))).await {
        Ok(delivered) => delivered?,
        Err(caught) => return Ok(caught.exit()),
    };
    let Delivered {
        session,
        sent,
        follow,
        attention,
    } = delivered;
    tty.iter().for_each(|tty| tty.attend(attention));
    note(known, &session.id, &sent);
    match follow {
        None => accepted(invocation, &arguments, &sent, known),
        Some(follow) => turn::watch(invocation, &arguments, follow, session, sent, tty, signals).await,
    }
}

/// What is known of an input once it is durable.
fn note(known: &mut ResultLine, session: &SessionId, sent: &Sent) {
    known.session = Some(session.clone());
    known.input_id = Some(sent.input_id.clone());
    known.turn.clone_from(&sent.turn);
}

/// `--no-wait`: the input is durable, and that is all.
fn accepted(invocation: &Invocation, arguments: &Arguments, sent: &Sent, known: &ResultLine) -> Result<Exit, Failure> {
    if !arguments.json {
        let session = known.session.as_ref().map_or("", SessionId::as_str);
        invocation.output.line(&format!("{session} {}", sent.input_id))?;
        return Ok(Exit::Completed);
    }
    let status = match sent.disposition {
        Disposition::Started => "started",
        Disposition::Steered => "steered",
        Disposition::Queued => "queued",
    };
    invocation.output.json(&ResultLine {
        status: status.to_owned(),
        exit_code: Exit::Completed.code(),
        ..known.clone()
    })?;
    Ok(Exit::Completed)
}
