//! `agentctl interrupt`: ends the turn that runs, or a command in the background.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::default_session;
use protocol::method::{InterruptParams, JobKill, JobKillParams, TurnInterrupt};
use protocol::{JobId, short};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session by id, piece of an id, name, or `last`
    #[arg(default_value_t = default_session())]
    session: String,
    /// A command in the background instead of the turn; `agentctl ps` lists them
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = invocation.session(&mut client, &arguments.session).await?.id;
    if let Some(job) = arguments.job {
        let params = JobKillParams {
            session: session.0.clone(),
            job: JobId(job.clone()),
        };
        client.call::<JobKill>(&params).await?;
        let job = invocation.output.inline(&job).into_owned();
        invocation
            .output
            .tell(&format!("{job} of session {} is asked to end", short(session.as_str())));
        return Ok(Exit::Completed);
    }
    let params = InterruptParams {
        session: session.0.clone(),
        turn: None,
    };
    let answer = client.call::<TurnInterrupt>(&params).await?;
    if !answer.interrupted {
        let message = format!("no turn runs in session {}", short(session.as_str()));
        return Err(Failure::with(Exit::TooLate, message));
    }
    let turn = answer.turn.map(|turn| format!(" turn {turn}")).unwrap_or_default();
    invocation
        .output
        .tell(&format!("interrupted{turn} of session {}", short(session.as_str())));
    Ok(Exit::Completed)
}
