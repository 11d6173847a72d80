//! Looking at a call outside of a turn: what a command would meet, before anybody asks a model.

use super::deps::Deps;
use crate::policy::Facts;
use crate::target::{Target, TargetSpec};
use crate::tool::{Place, ReadSet};
use std::collections::BTreeMap;
use std::path::Path;

/// The facts of a call of `bash` in `cwd`, found exactly as for a session there. Nothing runs.
///
/// # Errors
/// A directory that cannot be opened, a command that no call could have; for people.
pub(crate) async fn inspect_command(
    deps: &Deps,
    command: &str,
    cwd: &Path,
    root: &Path,
    environment: BTreeMap<String, String>,
) -> Result<Facts, String> {
    let tool = deps
        .tools
        .iter()
        .find(|tool| tool.spec().name == "bash")
        .ok_or("there is no tool bash")?;
    let spec = TargetSpec {
        roots: vec![root.to_owned()],
        cwd: cwd.to_owned(),
        environment,
        hidden: deps.hidden.clone(),
        sandbox: deps.sandbox.clone(),
    };
    let opened = tokio::task::spawn_blocking(move || Target::open(spec))
        .await
        .map_err(|error| error.to_string())?;
    let place = Place {
        target: opened.map_err(|error| error.to_string())?,
        read: ReadSet::default(),
        jobs: crate::tool::Jobs::default(),
    };
    let arguments = serde_json::json!({ "command": command });
    let inspected = tool
        .inspect(&arguments, &place)
        .await
        .map_err(|error| error.to_string())?;
    Ok(inspected.facts)
}
