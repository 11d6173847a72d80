//! `agentctl completions`: what a shell completes, printed for the shell to read.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use clap::CommandFactory;
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    shell: Shell,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    let mut command = crate::arguments::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "agentctl", &mut text);
    invocation.output.write(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Completed)
}
