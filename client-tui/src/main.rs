//! `agent-tui [SESSION]`: the terminal client as a program of its own. `agentctl attach` runs the same.

use clap::Parser;
use client_tui::Options;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// A terminal for a coding agent's session. The session lives in agentd and goes on when this leaves.
#[derive(Debug, Parser)]
#[command(name = "agent-tui", version)]
struct Arguments {
    /// Id, the end of one, name, or `last`; a new session if absent
    session: Option<String>,
    /// Directory to work in
    #[arg(short = 'C', long = "cwd", value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Model of a new session
    #[arg(long, value_name = "PROFILE")]
    model: Option<String>,
    /// What is asked before a tool runs, in a new session: ask, edits, all, none
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<protocol::Mode>,
    /// Work in DIR, too, beside the project; may be repeated
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    add_dir: Vec<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match start(Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            let text = format!("error: {error:#}");
            let shown = protocol::display::display(&text, protocol::display::Form::Block).into_owned();
            let _ = writeln!(std::io::stderr(), "{shown}");
            ExitCode::FAILURE
        }
    }
}

async fn start(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let here = std::env::current_dir()?;
    let cwd = arguments.cwd.map_or_else(|| here.clone(), |cwd| here.join(cwd));
    let options = Options {
        session: arguments.session,
        add_roots: arguments.add_dir.iter().map(|dir| cwd.join(dir)).collect(),
        cwd,
        model: arguments.model,
        mode: arguments.mode,
    };
    client_tui::run(options).await
}

fn mode(word: &str) -> Result<protocol::Mode, String> {
    serde_json::from_value(serde_json::Value::String(word.to_owned()))
        .map_err(|_| "modes are ask, edits, all, none".to_owned())
}
