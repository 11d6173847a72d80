//! `agentctl daemon`: starting, stopping and looking after agentd.

mod logs;
mod start;
mod status;
mod stop;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::duration_ms;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Start it and print its socket and process id; the same where it runs
    Start,
    /// Let running turns end for a while, park the rest, stop
    Stop(Drain),
    /// Stop it, start it
    Restart(Drain),
    /// Print what it is and does; does not start it
    Status {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print its log
    Logs {
        /// Only the last N lines
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        lines: usize,
        /// Go on with what comes
        #[arg(short, long)]
        follow: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Drain {
    /// How long running turns may take to end, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    drain: Option<u64>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    match arguments.action {
        Action::Start => start::run(invocation).await,
        Action::Stop(drain) => stop::run(invocation, drain.drain).await,
        Action::Restart(drain) => {
            stop::if_running(invocation, drain.drain).await?;
            start::run(invocation).await
        }
        Action::Status { json } => status::run(invocation, json).await,
        Action::Logs { lines, follow } => logs::run(invocation, lines, follow).await,
    }
}
