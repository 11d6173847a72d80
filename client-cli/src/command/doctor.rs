//! `agentctl doctor`: what this machine can enforce around commands, and which sandbox they run in therefore.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::display::{Form, display};
use protocol::method::{DaemonDoctor, DoctorAnswer, Empty, Standing};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let answer = client.call::<DaemonDoctor>(&Empty {}).await?;
    if arguments.json {
        invocation.output.json(&answer)?;
    } else {
        invocation.output.write(&text(&answer))?;
    }
    Ok(Exit::Completed)
}

fn text(answer: &DoctorAnswer) -> String {
    let network = if answer.network { "network on" } else { "no network" };
    let mut text = match answer.sandbox.as_str() {
        "off" => "commands run without a sandbox\n".to_owned(),
        mode => format!("commands run in the sandbox {mode}, {network}\n"),
    };
    for check in &answer.checks {
        let standing = match check.standing {
            Standing::Good => "good",
            Standing::Reduced => "reduced",
            Standing::Missing => "missing",
        };
        let (name, detail) = (display(&check.name, Form::Inline), display(&check.detail, Form::Inline));
        text.push_str(&format!("{name:<12} {standing:<8} {detail}\n"));
    }
    text
}
