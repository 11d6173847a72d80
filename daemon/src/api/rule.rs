//! `rule.*`: the user's own rules, and what a command would meet. Testing looks at a command exactly as a call of `bash`
//! would, and stops before it runs.

use super::client::Client;
use super::{Api, blocking};
use crate::policy::{self, Policy, Rule};
use crate::session::{inspect_command, project};
use crate::target::project_root;
use protocol::rule::{
    RuleAddParams, RuleListParams, RuleRemoveParams, RuleSource, RuleSpec, RuleTestParams, RuleVerdict, RuleView,
};
use protocol::{ErrorKind, RpcError};
use std::path::Path;
use std::sync::Arc;

pub(super) fn list(api: &Api, params: RuleListParams) -> Result<Vec<RuleView>, RpcError> {
    let book = &api.registry.deps().rules;
    let set = book.checked().map_err(|error| error.told())?;
    let own = set
        .rules
        .iter()
        .enumerate()
        .map(|(place, rule)| view(place, rule, book.path(), RuleSource::User));
    let mut views = own.collect::<Result<Vec<_>, _>>()?;
    if let Some(cwd) = &params.cwd {
        let root = project_root(directory(cwd)?);
        let project = api.registry.deps().projects.load(&root).map_err(|error| error.told())?;
        let file = crate::config::project::path(&root);
        let rules = project.rules.iter().enumerate();
        for (place, rule) in rules {
            views.push(view(place, rule, &file, RuleSource::Project)?);
        }
    }
    Ok(views)
}

pub(super) fn add(api: &Api, params: RuleAddParams) -> Result<RuleView, RpcError> {
    let book = &api.registry.deps().rules;
    let mut rule = rule(&params.rule)?;
    let tools = api.desk.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    policy::can_match(&rule, &names).map_err(|fault| {
        let told = RpcError::new(ErrorKind::InvalidParams, fault.to_string());
        told.hint(fault.hint(&names))
    })?;
    if rule.root.is_none()
        && let Some(cwd) = &params.cwd
    {
        rule.root = Some(project_root(directory(cwd)?));
    }
    let place = book.add(&rule).map_err(|error| error.told())?;
    view(place, &rule, book.path(), RuleSource::User)
}

pub(super) fn remove(api: &Api, params: RuleRemoveParams) -> Result<RuleView, RpcError> {
    let book = &api.registry.deps().rules;
    let place = usize::try_from(params.number).unwrap_or(usize::MAX).wrapping_sub(1);
    match book
        .remove(place, |rule| rule.to_string() == params.text)
        .map_err(|error| error.told())?
    {
        Some(rule) => view(place, &rule, book.path(), RuleSource::User),
        None => Err(RpcError::new(
            ErrorKind::InvalidParams,
            format!("there is no rule {} of this text", params.number),
        )
        .hint("list them again: agentctl rules list")),
    }
}

pub(super) async fn test(api: Arc<Api>, client: Arc<Client>, params: RuleTestParams) -> Result<RuleVerdict, RpcError> {
    let deps = api.registry.deps();
    let (rules, cwd) = (Arc::clone(&deps.rules), params.cwd.clone());
    let found = move || {
        let set = rules.checked().map_err(|error| error.told())?;
        Ok::<_, RpcError>((set, project_root(directory(&cwd)?)))
    };
    let (set, root) = blocking(found).await??;
    let environment = deps.standing.environment(&client.introduced().environment);
    let project = project(deps, &root.to_string_lossy()).await?;
    let facts = inspect_command(
        deps,
        &params.command,
        Path::new(&params.cwd),
        &root,
        &project,
        environment,
    )
    .await;
    let facts = facts.map_err(|error| RpcError::new(ErrorKind::InvalidParams, error))?;
    let own = set.rules.iter().filter_map(|rule| rule.bind(&root));
    let rules: Vec<Rule> = own.chain(project.rules).collect();
    let policy = Policy {
        mode: params.mode.or(project.mode).unwrap_or(api.desk.defaults().mode),
        rules: &rules,
        grants: &[],
        builtin_allow: set.builtin_allow,
    };
    let verdict = policy::judge(&facts, &policy);
    Ok(RuleVerdict {
        verdict: verdict.decision,
        reason: verdict.reason,
        rule: verdict.rule,
    })
}

/// A directory that a client stands in.
pub(super) fn directory(cwd: &str) -> Result<&Path, RpcError> {
    let path = Path::new(cwd);
    if path.is_absolute() && path.is_dir() {
        return Ok(path);
    }
    Err(RpcError::new(
        ErrorKind::InvalidParams,
        format!("{cwd} is not a directory with an absolute path"),
    ))
}

/// A rule that a client sent, in the words of a file.
fn rule(spec: &RuleSpec) -> Result<Rule, RpcError> {
    let value = serde_json::to_value(spec).and_then(serde_json::from_value);
    value.map_err(|error| RpcError::new(ErrorKind::InvalidParams, format!("the rule is wrong: {error}")))
}

fn view(place: usize, rule: &Rule, file: &Path, source: RuleSource) -> Result<RuleView, RpcError> {
    let spec = serde_json::to_value(rule).and_then(serde_json::from_value);
    Ok(RuleView {
        number: u32::try_from(place + 1).unwrap_or(u32::MAX),
        source,
        file: file.display().to_string(),
        text: rule.to_string(),
        rule: spec.map_err(|error| RpcError::new(ErrorKind::Internal, format!("a rule cannot be written: {error}")))?,
    })
}
