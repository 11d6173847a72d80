//! `agentctl tools`: what models can do here, and why a tool is off.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use protocol::method::{Empty, ToolInfo, ToolList};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON array, with the limits and the schema of each tool
    #[arg(long)]
    json: bool,
    /// One tool: what models are told of it, its limits among it
    name: Option<String>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let mut tools = client.call::<ToolList>(&Empty {}).await?;
    let output = &invocation.output;
    if let Some(name) = &arguments.name {
        if !tools.iter().any(|tool| tool.name == *name) {
            return Err(unknown(name, &tools));
        }
        tools.retain(|tool| tool.name == *name);
    }
    if arguments.json {
        output.json(&tools)?;
    } else if arguments.name.is_some() {
        for tool in &tools {
            output.line(&format!("{}\n\n{:#}", tool.description, tool.schema))?;
        }
    } else {
        let rows: Vec<Vec<String>> = tools.iter().map(row).collect();
        table::print(output, &["TOOL", "STATE", "WHAT IT DOES"], &rows)?;
    }
    Ok(Exit::Completed)
}

fn unknown(name: &str, tools: &[ToolInfo]) -> Failure {
    let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let hint = match protocol::nearest::nearest(name, &known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    Failure::with(Exit::NotFound, format!("there is no tool `{name}`\nhint: {hint}"))
}

fn row(tool: &ToolInfo) -> Vec<String> {
    let first = tool.description.split_inclusive(". ").next().unwrap_or_default();
    match &tool.why_off {
        None => vec![tool.name.clone(), "on".to_owned(), first.trim().to_owned()],
        Some(why) => vec![tool.name.clone(), "off".to_owned(), why.clone()],
    }
}
