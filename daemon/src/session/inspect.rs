//! Looking at a call outside of a turn: what a command would meet before anybody asks a model, and what a call would do that a
//! person has changed.

use super::deps::Deps;
use super::handle::Asked;
use super::input::{Edited, Inspected, Reach};
use crate::auth::Redactor;
use crate::config::Project;
use crate::config::trust::Pin;
use crate::policy::{Facts, Rule, RuleDecision, goes_beyond};
use crate::target::{Target, TargetSpec};
use crate::tool::{self, ArgumentError, Place, ReadSet};
use protocol::event::Action;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Scripts that one project's file is trusted with: more than a person looks at.
const PINS: usize = 256;

/// The facts of a call of `bash` in `cwd`, found exactly as for a session there. Nothing runs.
///
/// # Errors
/// A directory that cannot be opened, a command that no call could have; for people.
pub(crate) async fn inspect_command(
    deps: &Deps,
    command: &str,
    cwd: &Path,
    root: &Path,
    project: &Project,
    environment: BTreeMap<String, String>,
) -> Result<Facts, String> {
    let tools = deps.standing.tools();
    let tool = tools
        .iter()
        .find(|tool| tool.spec().name == "bash")
        .ok_or("there is no tool bash")?;
    let spec = TargetSpec {
        roots: vec![root.to_owned()],
        cwd: cwd.to_owned(),
        environment,
        hidden: deps.hidden.clone(),
        sandbox: deps.standing.sandbox(project),
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

/// The scripts that allow rules of a project's file name, as they are now. Nothing runs.
///
/// # Errors
/// A root that cannot be opened, too many scripts; for people.
pub(crate) fn pins(deps: &Deps, root: &Path, rules: &[Rule]) -> Result<Vec<Pin>, String> {
    let spec = TargetSpec {
        roots: vec![root.to_owned()],
        cwd: root.to_owned(),
        hidden: deps.hidden.clone(),
        ..TargetSpec::default()
    };
    let target = Target::open(spec).map_err(|error| error.to_string())?;
    let mut pins = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        let words = rule.command.as_ref().map(|words| words.0.join(" "));
        let words = words.or_else(|| rule.exact.clone()).unwrap_or_default();
        if rule.decision == RuleDecision::Allow {
            let found = tool::scripts::pinned_by(&words, &target).into_iter();
            pins.extend(found.map(|(path, hash)| Pin {
                rule: place,
                path,
                hash,
            }));
        }
        if pins.len() > PINS {
            return Err(format!("its allow rules name more than {PINS} scripts"));
        }
    }
    Ok(pins)
}

/// A call as a person changed it, held against the one that was asked about. A key in it is taken out, as out of all that is recorded.
///
/// # Errors
/// Arguments the tool does not take, a directory that is gone.
pub(crate) async fn inspect_edit(asked: &Asked, arguments: Value) -> Result<Edited, ArgumentError> {
    let arguments = asked.redactor.clean_value(arguments);
    let place = asked.place.get().await.map_err(ArgumentError::new)?;
    let inspected = asked.tool.inspect(&arguments, &place).await?;
    // What was asked about may be gone by now; then nothing of it counts as shown.
    let before = asked
        .tool
        .inspect(&asked.arguments, &place)
        .await
        .map(|before| before.facts);
    let reach = match before {
        Ok(before) if !goes_beyond(&before, &inspected.facts) => Reach::Within,
        _ => Reach::Beyond,
    };
    Ok(Edited {
        arguments,
        inspected: Inspected::recorded(inspected, &asked.redactor),
        reach,
    })
}

impl Inspected {
    /// What a tool found, as it is recorded: without the keys that files hold.
    pub(crate) fn recorded(inspected: tool::Inspected, redactor: &Redactor) -> Self {
        let tool::Action {
            command,
            diff,
            path,
            host,
            url,
            cwd,
            background_after_ms,
            timeout_ms,
        } = inspected.action;
        let diff = diff.map(|diff| redactor.clean(&diff).into_owned());
        Self {
            facts: inspected.facts,
            action: Action {
                command,
                parts: Vec::new(),
                diff,
                path,
                host,
                url,
                cwd,
                background_after_ms,
                timeout_ms,
            },
            digest: inspected.digest,
            writes: inspected.writes,
        }
    }
}
