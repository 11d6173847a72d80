//! `agentctl ps`: the turns that run or are parked, of all sessions.

use crate::command::ls::ago;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use protocol::method::{Empty, RunningTurn, TurnList};
use protocol::{Time, short};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let turns = invocation.connect().await?.call::<TurnList>(&Empty {}).await?;
    let output = &invocation.output;
    if arguments.json {
        output.json(&turns)?;
        return Ok(Exit::Completed);
    }
    let now = Time::now();
    let row = |turn: &RunningTurn| {
        let text = |text: &Option<String>| output.inline(text.as_deref().unwrap_or("-")).into_owned();
        let id = turn.session.as_str();
        vec![
            if output.on_terminal() { short(id) } else { id }.to_owned(),
            text(&turn.name),
            output.inline(turn.turn.as_str()).into_owned(),
            turn.phase.as_str().to_owned(),
            format!("step {}", turn.step),
            ago(now.ms_since(turn.started_at)),
            text(&turn.title),
        ]
    };
    let rows: Vec<_> = turns.iter().map(row).collect();
    if rows.is_empty() && output.on_terminal() {
        output.tell("no turn runs");
    } else {
        table::print(
            output,
            &["SESSION", "NAME", "TURN", "STATE", "STEP", "STARTED", "TITLE"],
            &rows,
        )?;
    }
    Ok(Exit::Completed)
}
