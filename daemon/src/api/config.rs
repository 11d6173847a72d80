//! `config.*`: the values in force with their origin, and changes of the user's file.

use super::Api;
use crate::config::{self, Book, RuleBook};
use crate::target::project_root;
use protocol::RpcError;
use protocol::config::{ConfigGetParams, ConfigSetParams, ConfigView, Setting};
use std::path::Path;

pub(super) fn get(api: &Api, params: ConfigGetParams) -> Result<ConfigView, RpcError> {
    view(api, params.cwd.as_deref())
}

pub(super) fn set(api: &Api, params: ConfigSetParams) -> Result<ConfigView, RpcError> {
    config::shown::set(user(api).path(), &params.key, &params.value).map_err(|error| error.told())?;
    view(api, None)
}

/// The one setting that stands among the rules.
fn builtin_allow(rules: &RuleBook) -> Setting {
    let allowed = rules.now().builtin_allow;
    Setting {
        key: "builtin_allow".to_owned(),
        value: allowed.to_string(),
        from: if allowed {
            "default".to_owned()
        } else {
            rules.path().display().to_string()
        },
    }
}

fn user(api: &Api) -> &Book {
    api.registry.deps().projects.user()
}

fn view(api: &Api, cwd: Option<&str>) -> Result<ConfigView, RpcError> {
    let deps = api.registry.deps();
    let user = user(api);
    let root = cwd.map(|cwd| project_root(Path::new(cwd)));
    let project = match &root {
        Some(root) => Some((
            config::project::path(root),
            deps.projects.load(root).map_err(|error| error.told())?,
        )),
        None => None,
    };
    let now = user.now();
    let of_project = project.as_ref().map(|(file, project)| (file.as_path(), project));
    let mut settings = config::shown::settings(&now, of_project);
    settings.push(builtin_allow(&deps.rules));
    Ok(ConfigView {
        file: user.path().display().to_string(),
        rules_file: deps.rules.path().display().to_string(),
        project_file: project
            .as_ref()
            .filter(|(_, project)| project.hash.is_some())
            .map(|(file, _)| file.display().to_string()),
        settings,
        changed: false,
        fault: user.fault().map(|error| error.to_string()),
        rules_fault: deps.rules.fault(),
    })
}
