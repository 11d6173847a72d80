//! Every tool there is, and which of them this daemon offers to models.

use std::sync::Arc;

use super::fetch_url::FetchUrl;
use super::web::{Reach, Web};
use super::web_search::WebSearch;
use super::{
    Tool, bash, edit_file, glob, grep, job_kill, job_output, list_dir, read_file, time, todo_write, write_file,
};

/// Tools that are off unless the user names them.
const OFF_BY_DEFAULT: [&str; 1] = ["time"];

/// Tools that mean nothing without another one.
const BELONGS_TO: [(&str, &str); 2] = [("job_output", "bash"), ("job_kill", "bash")];

/// What the user says of tools.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Names of tools to offer that are off by default.
    pub enabled: Vec<String>,
    /// Names of tools not to offer.
    pub disabled: Vec<String>,
    /// Hosts the web tools may reach although they are not public, `host` or `host:port`.
    pub fetch_hosts: Vec<String>,
    /// Who answers `web_search`.
    pub search_engine: SearchEngine,
    /// Where it answers; its usual address if there is one.
    pub search_url: Option<String>,
}

/// A search engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SearchEngine {
    #[default]
    DuckDuckGo,
    Searxng,
}

/// A tool, and whether models are offered it.
#[derive(Clone)]
pub struct Listed {
    pub tool: Arc<dyn Tool>,
    /// Why it is not offered; `None`: it is.
    pub off: Option<Off>,
}

/// Why a tool is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    ByDefault,
    ByConfig,
}

impl Off {
    /// For people, with what to do about it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByDefault => "off by default; add it to `enabled` in [tools]",
            Self::ByConfig => "listed in `disabled` in [tools]",
        }
    }
}

/// A name in the settings that no tool has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`")]
pub struct UnknownTool {
    pub name: String,
    pub known: Vec<&'static str>,
}

/// Every tool there is, in the order models and people see them.
///
/// # Errors
/// The settings name a tool that does not exist.
pub fn catalog(settings: &Settings) -> Result<Vec<Listed>, UnknownTool> {
    let tools = all(settings);
    let known: Vec<&'static str> = tools.iter().map(|tool| tool.spec().name).collect();
    let named = settings.enabled.iter().chain(&settings.disabled);
    if let Some(name) = named.into_iter().find(|name| !known.contains(&name.as_str())) {
        return Err(UnknownTool {
            name: name.clone(),
            known,
        });
    }
    let listed = |tool: Arc<dyn Tool>| Listed {
        off: off(settings, tool.spec().name),
        tool,
    };
    Ok(tools.into_iter().map(listed).collect())
}

/// Every tool there is, offered or not.
pub fn all(settings: &Settings) -> Vec<Arc<dyn Tool>> {
    let web = Web::new(Reach::new(&settings.fetch_hosts));
    // The engine's own address is the user's choice, so it may be anywhere.
    let engine_host: Vec<String> = settings
        .search_url
        .iter()
        .filter_map(|url| host_and_port(url))
        .collect();
    let engine = Web::new(Reach::new(&engine_host));
    vec![
        Arc::new(read_file::ReadFile),
        Arc::new(list_dir::ListDir),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(write_file::WriteFile),
        Arc::new(edit_file::EditFile),
        Arc::new(bash::Bash),
        Arc::new(job_output::JobOutput),
        Arc::new(job_kill::JobKill),
        Arc::new(FetchUrl::new(web)),
        Arc::new(WebSearch::new(
            engine,
            settings.search_engine,
            settings.search_url.clone(),
        )),
        Arc::new(todo_write::TodoWrite),
        Arc::new(time::Time),
    ]
}

fn off(settings: &Settings, name: &str) -> Option<Off> {
    let named = |names: &[String], name: &str| names.iter().any(|own| own == name);
    let owner = BELONGS_TO
        .iter()
        .find(|(part, _)| *part == name)
        .map(|(_, owner)| *owner);
    if named(&settings.disabled, name) || owner.is_some_and(|owner| named(&settings.disabled, owner)) {
        Some(Off::ByConfig)
    } else if OFF_BY_DEFAULT.contains(&name) && !named(&settings.enabled, name) {
        Some(Off::ByDefault)
    } else {
        None
    }
}

fn host_and_port(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(settings: &Settings) -> anyhow::Result<Vec<&'static str>> {
        let all = catalog(settings)?;
        Ok(all
            .iter()
            .filter(|listed| listed.off.is_none())
            .map(|listed| listed.tool.spec().name)
            .collect())
    }

    #[test]
    fn the_user_decides_what_is_offered() -> anyhow::Result<()> {
        let default = offered(&Settings::default())?;
        assert!(default.contains(&"bash") && default.contains(&"fetch_url") && !default.contains(&"time"));
        let settings = Settings {
            enabled: vec!["time".into()],
            disabled: vec!["bash".into()],
            ..Settings::default()
        };
        let chosen = offered(&settings)?;
        assert!(chosen.contains(&"time"));
        assert!(
            !chosen.contains(&"bash") && !chosen.contains(&"job_output"),
            "what belongs to bash goes with it"
        );
        Ok(())
    }

    #[test]
    fn a_misspelt_name_is_refused_since_a_tool_would_stay_on() {
        let settings = Settings {
            disabled: vec!["bsh".into()],
            ..Settings::default()
        };
        assert!(catalog(&settings).is_err_and(|error| error.name == "bsh" && error.known.contains(&"bash")));
    }
}
