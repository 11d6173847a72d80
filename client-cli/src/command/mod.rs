//! The commands, a file each, of one shape: its arguments, then `run`.

pub(crate) mod approvals;
pub(crate) mod approve;
pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod deny;
pub(crate) mod doctor;
pub(crate) mod interrupt;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod ls;
pub(crate) mod mode;
pub(crate) mod model;
pub(crate) mod new;
pub(crate) mod ps;
pub(crate) mod queue;
pub(crate) mod rename;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod send;
pub(crate) mod show;
pub(crate) mod tail;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod usage;
pub(crate) mod version;
pub(crate) mod wait;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::AddedRoots;
use std::process::ExitCode;

macro_rules! commands {
    ($($(#[$attribute:meta])* $variant:ident => $module:ident,)*) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command { $($(#[$attribute])* $variant($module::Arguments),)* }

        async fn run_command(invocation: &Invocation, command: Command) -> Result<ExitCode, Failure> {
            match command {
                $(Command::$variant(arguments) => Box::pin($module::run(invocation, arguments)).await.map(ExitCode::from),)*
            }
        }
    };
}

commands! {
    /// Send a text and wait for its answer
    Send => send,
    /// Open the terminal UI on a session
    Attach => attach,
    /// Let a parked turn go on and, on a terminal, open its session
    Resume => resume,
    /// Make a session and print its id
    New => new,
    /// List the sessions of this project, the newest use first
    Ls => ls,
    /// List the turns that run or are parked and the commands in the background, of all sessions
    Ps => ps,
    /// Print a session's transcript
    Show => show,
    /// Print a session's log, an event a line
    Tail => tail,
    /// List what waits for an answer
    Approvals => approvals,
    /// Allow what waits
    Approve => approve,
    /// Refuse what waits
    Deny => deny,
    /// End the turn that runs, or a command in the background
    Interrupt => interrupt,
    /// Wait for the turn that runs
    Wait => wait,
    /// Show or set what a session asks before it acts
    Mode => mode,
    /// List, cancel or resume inputs that wait for their turn
    Queue => queue,
    /// List, add, remove and try rules of what may run
    Rules => rules,
    /// Let what a project's own file asks for count
    Trust => trust,
    /// Show what model calls used: tokens and cost
    Usage => usage,
    /// List the models a session can use
    Model => model,
    /// Log in at a model's provider
    Login => login,
    /// Log out again
    Logout => logout,
    /// Name a session
    Rename => rename,
    /// Delete a session
    Rm => rm,
    /// Show and change your configuration
    Config => config,
    /// List the tools that models can use, and those that are off
    Tools => tools,
    /// Start, stop and look after the daemon
    Daemon => daemon,
    /// Show what this machine can enforce around commands
    Doctor => doctor,
    /// Print the JSON Schema of the protocol
    Schema => schema,
    /// Print the versions of client and daemon
    Version => version,
    /// Print shell completions
    Completions => completions,
}

/// Runs what was asked for; without a command, the terminal UI.
pub(crate) async fn run(
    invocation: &Invocation,
    command: Option<Command>,
    roots: &AddedRoots,
) -> Result<ExitCode, Failure> {
    match command {
        // For the terminal UI it was meant; a command that knows it takes it behind its name.
        Some(_) if !roots.add_dir.is_empty() => Err(Failure::usage(
            "`--add-dir` stands before the command\nhint: put it behind `send`, `new` or `attach`",
        )),
        Some(command) => run_command(invocation, command).await,
        None => attach::run_bare(invocation, roots).await,
    }
}
