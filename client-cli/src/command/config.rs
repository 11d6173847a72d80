//! `agentctl config`: the values in force and where each comes from; the file itself, changed by hand or by value.

use crate::editor;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use crate::values::environment;
use protocol::config::{ConfigGetParams, ConfigSetParams, ConfigView, Setting};
use protocol::method::{ConfigGet, ConfigSet};
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print each value in force here and where it comes from
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the path of your configuration file
    Path,
    /// Open the file in your editor and check what you left
    Edit,
    /// Set one value, such as `agentctl config set session.mode edits`
    Set { key: String, value: String },
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    match arguments.action {
        Action::Show { json } => {
            let mut view = get(invocation, Some(invocation.cwd())).await?;
            of_environment(&mut view.settings);
            if let Some(fault) = &view.rules_fault {
                invocation.output.warn(fault);
            }
            if json {
                invocation.output.json(&view)?
            } else {
                print(invocation, &view)?
            }
        }
        Action::Path => {
            let file = protocol::place::config_file()?;
            invocation.output.line(&file.display().to_string())?;
        }
        Action::Edit => {
            let view = get(invocation, None).await?;
            editor::open(Path::new(&view.file))?;
            check(&get(invocation, None).await?)?;
        }
        Action::Set { key, value } => {
            let mut client = invocation.connect_silently().await?;
            let view = client.call::<ConfigSet>(&ConfigSetParams { key, value }).await?;
            check(&view)?;
        }
    }
    Ok(Exit::Completed)
}

async fn get(invocation: &Invocation, cwd: Option<String>) -> Result<ConfigView, Failure> {
    let mut client = invocation.connect_silently().await?;
    Ok(client.call::<ConfigGet>(&ConfigGetParams { cwd }).await?)
}

/// Variables that set a value for what is started here, with the key each stands before.
const VARIABLES: &[(&str, &str)] = &[("AGENTD_MODEL", "default_model"), ("AGENTD_MODE", "session.mode")];

/// What the environment says counts before the files.
fn of_environment(settings: &mut Vec<Setting>) {
    for (variable, key) in VARIABLES {
        let Some(value) = environment(variable) else { continue };
        let (value, from) = (format!("{value:?}"), format!("${variable}"));
        match settings.iter_mut().find(|setting| setting.key == *key) {
            Some(setting) => (setting.value, setting.from) = (value, from),
            None => settings.push(Setting {
                key: (*key).to_owned(),
                value,
                from,
            }),
        }
    }
}

fn print(invocation: &Invocation, view: &ConfigView) -> Result<(), Failure> {
    let output = &invocation.output;
    let text = |text: &str| output.inline(text).into_owned();
    let rows = view
        .settings
        .iter()
        .map(|setting| vec![text(&setting.key), text(&setting.value), text(&setting.from)]);
    table::print(output, &["KEY", "VALUE", "FROM"], &rows.collect::<Vec<_>>())?;
    check(view)
}

/// What is wrong with the file.
fn check(view: &ConfigView) -> Result<(), Failure> {
    match &view.fault {
        Some(fault) => Err(Failure::error(fault.clone())),
        None => Ok(()),
    }
}
