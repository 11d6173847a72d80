//! `agentctl ps`: the turns that run or are parked, and the commands in the background, of all sessions.

use crate::command::ls::ago;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use protocol::method::{Empty, JobInfo, JobList, JobListParams, RunningTurn, TurnList};
use protocol::{Time, short};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON array: turns, then jobs, which have a `job`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let turns = client.call::<TurnList>(&Empty {}).await?;
    let jobs = client.call::<JobList>(&JobListParams::default()).await?;
    let output = &invocation.output;
    if arguments.json {
        let value = |error: serde_json::Error| Failure::error(format!("cannot write JSON: {error}"));
        let mut all: Vec<serde_json::Value> = Vec::new();
        for turn in &turns {
            all.push(serde_json::to_value(turn).map_err(value)?);
        }
        for job in &jobs {
            all.push(serde_json::to_value(job).map_err(value)?);
        }
        output.json(&all)?;
        return Ok(Exit::Completed);
    }
    let now = Time::now();
    let text = |text: &Option<String>| output.inline(text.as_deref().unwrap_or("-")).into_owned();
    let id = |id: &str| if output.on_terminal() { short(id) } else { id }.to_owned();
    let turn = |turn: &RunningTurn| {
        vec![
            id(turn.session.as_str()),
            text(&turn.name),
            output.inline(turn.turn.as_str()).into_owned(),
            format!("{}, step {}", turn.phase.as_str(), turn.step),
            ago(now.ms_since(turn.started_at)),
            text(&turn.title),
        ]
    };
    let job = |job: &JobInfo| {
        vec![
            id(job.session.as_str()),
            text(&job.name),
            output.inline(job.job.as_str()).into_owned(),
            "in the background".to_owned(),
            ago(now.ms_since(job.started_at)),
            output.inline(&job.command).into_owned(),
        ]
    };
    let rows: Vec<_> = turns.iter().map(turn).chain(jobs.iter().map(job)).collect();
    if rows.is_empty() && output.on_terminal() {
        output.tell("nothing runs");
        return Ok(Exit::Completed);
    }
    table::print(output, &["SESSION", "NAME", "WHAT", "STATE", "STARTED", "TITLE"], &rows)?;
    if output.on_terminal() && !jobs.is_empty() {
        output.tell("hint: `agentctl interrupt SESSION --job JOB` ends what runs in the background");
    }
    Ok(Exit::Completed)
}
