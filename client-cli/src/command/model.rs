//! `agentctl model list`: the models that `--model` names, and what their servers say they have.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use protocol::method::{ModelInfo, ModelList, ModelListAnswer, ModelListParams};

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
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let Action::List { configured, json } = arguments.action;
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
