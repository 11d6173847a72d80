//! `agentctl model list`: the models that `--model` names, and what their servers say they have. `agentctl model confirm`: whether a
//! server that was found on this machine may answer.

use crate::ask::{Tty, yes_or_no};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::output::Output;
use crate::table;
use protocol::client::{Client, ClientError};
use protocol::method::{
    LocalDecision, LocalServer, ModelConfirm, ModelConfirmParams, ModelInfo, ModelList, ModelListAnswer,
    ModelListParams,
};
use protocol::wording;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the models that `--model` names
    List {
        /// Do not ask servers which models they have
        #[arg(long)]
        configured: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Say whether a model server that was found on this machine may answer
    Confirm {
        /// Let it answer without being asked
        #[arg(long, conflicts_with = "no")]
        yes: bool,
        /// Never, and do not ask again
        #[arg(long)]
        no: bool,
    },
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    match arguments.action {
        Action::List { configured, json } => list(invocation, configured, json).await,
        Action::Confirm { yes: true, .. } => decide(invocation, Some(LocalDecision::Use)).await,
        Action::Confirm { no: true, .. } => decide(invocation, Some(LocalDecision::Never)).await,
        Action::Confirm { .. } => decide(invocation, None).await,
    }
}

/// Records what the person said, or asks.
async fn decide(invocation: &Invocation, said: Option<LocalDecision>) -> Result<Exit, Failure> {
    let output = &invocation.output;
    let mut client = invocation.connect().await?;
    let answer = client.call::<ModelList>(&ModelListParams::default()).await?;
    let Some(server) = answer.local_server else {
        output.tell("no model server was found on this machine that could answer instead of another model");
        return Ok(Exit::Completed);
    };
    let decision = match said {
        Some(decision) => decision,
        None => {
            let tty = Tty::open().ok_or_else(nobody)?;
            match ask_about(&server, &tty, *output).await.ok_or_else(nobody)? {
                true => LocalDecision::Use,
                false => LocalDecision::Never,
            }
        }
    };
    confirm(&mut client, &server, decision).await?;
    output.tell(&wording::local_decision(&server, decision));
    Ok(Exit::Completed)
}

fn nobody() -> Failure {
    Failure::usage("nobody is here to be asked\nhint: `agentctl model confirm --yes` lets it answer, --no does not")
}

/// Asks on the terminal whether the server may answer; `None` if nobody can be asked there.
pub(super) async fn ask_about(server: &LocalServer, tty: &Tty, output: Output) -> Option<bool> {
    for line in wording::local_server_lines(server) {
        output.tell_always(&line);
    }
    yes_or_no(tty, output, "let it answer?").await
}

/// Records the decision on exactly the server that was shown.
pub(super) async fn confirm(
    client: &mut Client,
    server: &LocalServer,
    decision: LocalDecision,
) -> Result<(), ClientError> {
    let params = ModelConfirmParams {
        address: server.address.clone(),
        uid: server.uid,
        decision,
    };
    client.call::<ModelConfirm>(&params).await.map(drop)
}

async fn list(invocation: &Invocation, configured: bool, json: bool) -> Result<Exit, Failure> {
    let params = ModelListParams { available: !configured };
    let answer = invocation.connect().await?.call::<ModelList>(&params).await?;
    if json {
        invocation.output.json(&answer)?;
    } else {
        print(invocation, &answer)?;
    }
    Ok(Exit::Completed)
}

fn print(invocation: &Invocation, answer: &ModelListAnswer) -> Result<(), Failure> {
    let output = &invocation.output;
    let shown = |text: &str| output.inline(text).into_owned();
    let row = |model: &ModelInfo| {
        let address = if model.address.is_empty() { "-" } else { &model.address };
        vec![
            shown(&model.name),
            shown(&model.model),
            shown(address),
            format!("{}{}", model.context_tokens, if model.context_known { "" } else { "?" }),
            price(model),
            shown(&state(model)),
        ]
    };
    let mut rows: Vec<Vec<String>> = answer.models.iter().map(row).collect();
    for model in &answer.models {
        // What can be asked for beside the profile's own model.
        let others = model.available.iter().flatten().filter(|id| **id != model.model);
        rows.extend(others.map(|id| {
            let empty = String::new;
            vec![
                shown(&format!("({})", model.name)),
                shown(id),
                empty(),
                empty(),
                empty(),
                "available".to_owned(),
            ]
        }));
    }
    table::print(
        output,
        &["NAME", "MODEL", "AT", "CONTEXT", "$/M IN OUT", "STATE"],
        &rows,
    )?;
    if let Some(notice) = &answer.notice {
        output.tell(&shown(notice));
    }
    let unused = |_: &&LocalServer| answer.local_decision != Some(LocalDecision::Use);
    if let Some(server) = answer.local_server.as_ref().filter(unused) {
        for line in wording::local_server_lines(server) {
            output.tell(&line);
        }
        output.tell("hint: `agentctl model confirm` lets it answer");
    }
    for model in &answer.models {
        if let Some(problem) = &model.problem {
            output.tell(&format!("{}: {}", shown(&model.name), shown(problem)));
        }
    }
    Ok(())
}

fn price(model: &ModelInfo) -> String {
    model.prices.map_or_else(
        || "-".to_owned(),
        |prices| format!("{} {}", prices.input, prices.output),
    )
}

fn state(model: &ModelInfo) -> String {
    if model.needs_login {
        return "needs agentctl login".to_owned();
    }
    match (&model.lacks, model.default) {
        (Some(variable), _) => format!("needs {variable}"),
        (None, true) => "default".to_owned(),
        (None, false) => "ready".to_owned(),
    }
}
