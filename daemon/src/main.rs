//! `agentd`: `run` in the foreground, `start` detached; and the guard that its commands run below.

use clap::{Parser, Subcommand};
use daemon::startup::{self, StartError};
use daemon::{config, target};
use std::io::Write;
use std::process::ExitCode;

/// The agent daemon. `agentctl` starts it by itself.
#[derive(Parser)]
#[command(version, name = "agentd")]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run in the foreground.
    Run {
        /// Leave the terminal, and say on stdout when clients can connect.
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Start in the background, and return when clients can connect.
    Start,
}

fn main() -> ExitCode {
    if let Some(code) = target::exec_guard(std::env::args_os()) {
        return code;
    }
    let result = match Arguments::parse().action {
        Action::Start => startup::detach(),
        Action::Run { detached } => run(detached),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(detached: bool) -> Result<(), StartError> {
    let own = |what| {
        move |error| StartError::File {
            what,
            path: "/proc/self".into(),
            error,
        }
    };
    if detached {
        startup::leave_terminal().map_err(own("cannot leave the terminal"))?;
    }
    target::harden_daemon().map_err(own("cannot protect this process"))?;
    let claim = startup::claim()?;
    let file = protocol::place::config_file()?;
    // Who names a file of their own gets none made for them.
    let template = match file == protocol::place::usual_config_file()? {
        true => config::write_template(&file),
        false => Ok(()),
    };
    let config = config::load(&file)?;
    let redactor = daemon::auth::Redactor::default();
    let _logging = startup::start_logging(claim.state_dir(), redactor.clone())?;
    if let Err(error) = template {
        tracing::warn!("{error}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(own("cannot start the runtime"))?;
    runtime.block_on(daemon::run(config, claim, redactor, || {
        if detached {
            startup::say_ready()
        }
    }))
}
