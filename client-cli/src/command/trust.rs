//! `agentctl trust`: shows what a project's own file asks for, and lets that very content count.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::display::{Form, display};
use protocol::method::{TrustGet, TrustSet};
use protocol::trust::{TrustGetParams, TrustSetParams, TrustView};
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Directory of the project; this one if left out
    dir: Option<PathBuf>,
    /// Trust it without being asked
    #[arg(long, conflicts_with = "revoke")]
    yes: bool,
    /// Trust nothing of it any more
    #[arg(long)]
    revoke: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let dir = arguments
        .dir
        .as_ref()
        .map_or_else(|| invocation.cwd.clone(), |dir| invocation.cwd.join(dir));
    let cwd = dir.to_string_lossy().into_owned();
    let mut client = invocation.connect().await?;
    let output = &invocation.output;
    if arguments.revoke {
        let view = client.call::<TrustSet>(&TrustSetParams { cwd, hash: None }).await?;
        output.tell(&format!("not trusted any more: {}", inline(&view.file)));
        return Ok(Exit::Completed);
    }
    let view = client.call::<TrustGet>(&TrustGetParams { cwd: cwd.clone() }).await?;
    let Some(hash) = view.hash.clone() else {
        output.tell(&format!(
            "there is no {}, so there is nothing to trust",
            inline(&view.file)
        ));
        return Ok(Exit::Completed);
    };
    show(&view, invocation);
    if view.trusted {
        output.tell("it is trusted already");
        return Ok(Exit::Completed);
    }
    if !arguments.yes && !asked(invocation)? {
        output.tell("not trusted; what it restricts counts all the same");
        return Ok(Exit::Completed);
    }
    client
        .call::<TrustSet>(&TrustSetParams { cwd, hash: Some(hash) })
        .await?;
    output.tell("trusted, for sessions that begin from now on and until the file changes");
    Ok(Exit::Completed)
}

fn show(view: &TrustView, invocation: &Invocation) {
    let output = &invocation.output;
    output.tell(&format!("{}:", inline(&view.file)));
    for line in display(view.text.as_deref().unwrap_or_default(), Form::Block).lines() {
        output.tell(&format!("  {line}"));
    }
    for script in &view.scripts {
        output.tell(&format!("with this script as it is now: {}", inline(script)));
    }
    for line in &view.ignored {
        output.tell(&format!("does not count now: {}", inline(line)));
    }
}

fn asked(invocation: &Invocation) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage(
            "nobody is here to be asked\nhint: `agentctl trust --yes` trusts it after you have read it",
        ));
    }
    invocation
        .output
        .whisper("trust exactly this content, in this directory? [y/N] ");
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    read.map_err(|error| Failure::error(format!("cannot read the answer: {error}")))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn inline(text: &str) -> String {
    display(text, Form::Inline).into_owned()
}
