//! `agentctl`: the command line of agentd. Parses, connects, prints; everything that must outlive it lives in the daemon.

mod arguments;
mod ask;
mod command;
mod editor;
mod exit;
mod failure;
mod follow;
mod invocation;
mod output;
mod result;
mod signals;
mod table;
mod values;
mod words;

use arguments::Arguments;
use clap::Parser;
use exit::Exit;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    harden();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Completed
            }
            .into();
        }
    };
    let output = arguments.output();
    let result = arguments
        .invocation()
        .and_then(|invocation| run(&invocation, arguments));
    result.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit().into()
    })
}

/// Keys pass through this process, so no other may look into it and no core file may hold them.
fn harden() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// One thread is enough: it waits for one socket and one terminal.
fn run(invocation: &invocation::Invocation, arguments: Arguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::error(format!("cannot start: {error}")))?;
    let result = runtime.block_on(command::run(invocation, arguments.command, &arguments.roots));
    // A blocking read of stdin may never end, and nothing else is left to wait for.
    runtime.shutdown_background();
    result
}
