//! The command line as a whole: global flags and the table of commands. What a command takes is in its own file.

use crate::command::Command;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::output::{Colour, Output, Verbosity};
use crate::values::AddedRoots;
use std::path::PathBuf;

/// Talk to agentd, the daemon that owns your coding-agent sessions.
///
/// Without a command: the terminal UI on the last session of this project, or a new one.
#[derive(Debug, clap::Parser)]
#[command(name = "agentctl", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Do as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true)]
    directory: Option<PathBuf>,
    /// Config file of a daemon that is started by this call
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Tell more: arguments, results, reasoning
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Tell errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    color: Colour,
    #[command(flatten)]
    pub(crate) roots: AddedRoots,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Arguments {
    /// Where and how to print.
    pub(crate) fn output(&self) -> Output {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        };
        Output::new(verbosity, self.color)
    }

    /// Makes what was asked for true of this process: its config file, then its directory.
    pub(crate) fn invocation(&self) -> Result<Invocation, Failure> {
        if let Some(file) = &self.config {
            let file = std::path::absolute(file).map_err(|error| Failure::reading(file.display(), &error))?;
            protocol::client::use_config(file);
        }
        if let Some(directory) = &self.directory {
            std::env::set_current_dir(directory)
                .map_err(|error| Failure::error(format!("cannot go to {}: {error}", directory.display())))?;
        }
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::error(format!(
                "the current directory is gone: {error}\nhint: use `-C DIR`, or `cd` to one that exists"
            ))
        })?;
        Ok(Invocation {
            cwd,
            output: self.output(),
        })
    }
}
