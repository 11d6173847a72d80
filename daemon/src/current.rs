//! What follows from the configuration as it is now: tools, sandbox, limits, what clients are told. Made anew when the file has
//! changed; a session that lives takes only what narrows it.

use crate::api::SettingsDesk;
use crate::config::context::ContextSettings;
use crate::config::{self, Book, Config, ConfigError, Project, RuleBook};
use crate::session::{CostLimits, Resume, Standing, Tuning};
use crate::target::{self, sandbox};
use crate::tool::{self, Tool};
use protocol::Settings;
use protocol::attention::Attention;
use protocol::method::{DoctorAnswer, DoctorCheck, ToolInfo};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The configuration with what is made of it.
pub(crate) struct Current {
    book: Arc<Book>,
    rules: Arc<RuleBook>,
    /// What the machine can enforce, found out at the start.
    support: sandbox::Support,
    /// What no sandboxed command sees of the daemon.
    hidden: Vec<PathBuf>,
    /// The tools of the configuration that was asked for last.
    tools: Mutex<Option<Made>>,
}

/// The tools of one configuration.
struct Made {
    of: Arc<Config>,
    tools: Arc<[tool::Listed]>,
}

/// Whether a configuration can be lived with, beyond what its own reading checks.
///
/// # Errors
/// It names a tool that there is not, or a search engine without its address.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    searches(config)?;
    listed(config).map(drop)
}

impl Current {
    /// `hidden` is of the daemon's own; the directory of the configuration is added to it.
    pub(crate) fn new(
        book: Arc<Book>,
        rules: Arc<RuleBook>,
        support: sandbox::Support,
        mut hidden: Vec<PathBuf>,
    ) -> Self {
        // The configuration may lie in a directory that is not the daemon's alone.
        let own = book.path().parent().filter(|parent| parent.ends_with("agentd"));
        hidden.push(own.unwrap_or(book.path()).to_owned());
        Self {
            book,
            rules,
            support,
            hidden,
            tools: Mutex::default(),
        }
    }

    fn listed(&self) -> Arc<[tool::Listed]> {
        let config = self.book.now();
        let mut made = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(Made { of, tools }) if Arc::ptr_eq(of, &config) => Arc::clone(tools),
            _ => {
                // The book has checked it.
                let tools: Arc<[tool::Listed]> = listed(&config).unwrap_or_default().into();
                *made = Some(Made {
                    of: config,
                    tools: Arc::clone(&tools),
                });
                tools
            }
        }
    }
}

impl Standing for Current {
    fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
        let offered = |listed: &tool::Listed| listed.off.is_none().then(|| Arc::clone(&listed.tool));
        self.listed().iter().filter_map(offered).collect()
    }

    fn context(&self) -> ContextSettings {
        self.book.now().context.clone()
    }

    fn sandbox(&self, project: &Project) -> sandbox::Settings {
        use config::{SandboxCaches, SandboxMode, SandboxNetwork, SandboxRepositories};
        let wanted = project.sandbox.within(self.book.now().sandbox);
        sandbox::Settings {
            mode: match wanted.mode {
                SandboxMode::Off => sandbox::Mode::Off,
                SandboxMode::ReadOnly => sandbox::Mode::ReadOnly,
                SandboxMode::WorkspaceWrite => sandbox::Mode::WorkspaceWrite,
            },
            network: match wanted.network {
                SandboxNetwork::On => sandbox::Network::On,
                SandboxNetwork::Off => sandbox::Network::Off,
            },
            caches: match wanted.caches {
                SandboxCaches::Shared => sandbox::Caches::Shared,
                SandboxCaches::Private => sandbox::Caches::Private,
            },
            new_repositories: match wanted.new_repositories {
                SandboxRepositories::Refuse => sandbox::NewRepositories::Refuse,
                SandboxRepositories::Allow => sandbox::NewRepositories::Allow,
            },
            support: self.support.clone(),
            hidden: self.hidden.clone(),
        }
    }

    fn environment(&self, client: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let config = self.book.now();
        target::command_environment(client, &config.session.env, &config.key_variables())
    }

    fn tuning(&self) -> Tuning {
        let config = self.book.now();
        Tuning {
            retries: config.limits.retries,
            passivate_after: config.limits.passivate_after,
            park_after: config.limits.park_after,
            resume: match config.session.resume {
                config::Resume::Auto => Resume::Auto,
                config::Resume::Off => Resume::Off,
            },
            ..Tuning::default()
        }
    }

    fn cost_limits(&self) -> CostLimits {
        let limits = self.book.now().limits;
        CostLimits {
            per_session: limits.cost_per_session_usd,
            per_day: limits.cost_per_day_usd,
        }
    }

    fn fault(&self) -> Option<String> {
        let config = self.book.fault();
        let config = config.map(|error| format!("what the configuration said before still holds: {error}"));
        let faults: Vec<String> = config.into_iter().chain(self.rules.fault()).collect();
        (!faults.is_empty()).then(|| faults.join("\n"))
    }
}

impl SettingsDesk for Current {
    fn defaults(&self) -> Settings {
        let config = self.book.now();
        Settings {
            model: None,
            mode: config.session.mode,
            mode_until: None,
            mode_after: None,
            unattended: config.session.unattended.unwrap_or_default(),
            limits: config.session.limits,
        }
    }

    fn environment(&self) -> Vec<String> {
        self.book.now().session.env.clone()
    }

    fn tools(&self) -> Vec<ToolInfo> {
        self.listed().iter().map(info).collect()
    }

    fn doctor(&self) -> DoctorAnswer {
        let sandbox = Standing::sandbox(self, &Project::default());
        let mode = sandbox.effective_mode();
        DoctorAnswer {
            sandbox: mode.as_str().to_owned(),
            network: mode == sandbox::Mode::Off || sandbox.network == sandbox::Network::On,
            checks: sandbox.support.checks().into_iter().map(checked).collect(),
        }
    }

    fn attention(&self) -> Attention {
        self.book.now().notify.attention
    }

    fn fault(&self) -> Option<String> {
        Standing::fault(self)
    }
}

/// A row for people.
fn checked(check: sandbox::Check) -> DoctorCheck {
    use protocol::method::Standing;
    DoctorCheck {
        name: check.name.to_owned(),
        standing: match check.standing {
            sandbox::Standing::Good => Standing::Good,
            sandbox::Standing::Reduced => Standing::Reduced,
            sandbox::Standing::Missing => Standing::Missing,
        },
        detail: check.detail,
    }
}

/// A tool as clients see it.
fn info(listed: &tool::Listed) -> ToolInfo {
    let spec = listed.tool.spec();
    ToolInfo {
        name: spec.name.to_owned(),
        description: spec.description.clone(),
        writes: spec.writes,
        enabled: listed.off.is_none(),
        why_off: listed.off.map(|off| off.as_str().to_owned()),
        schema: spec.schema.clone(),
    }
}

/// Every tool, and which are offered.
fn listed(config: &Config) -> Result<Vec<tool::Listed>, ConfigError> {
    let config::ToolSettings {
        enabled,
        disabled,
        fetch_hosts,
        search_engine,
        search_url,
    } = config.tools.clone();
    let search_engine = match search_engine {
        config::SearchEngine::DuckDuckGo => tool::catalog::SearchEngine::DuckDuckGo,
        config::SearchEngine::Searxng => tool::catalog::SearchEngine::Searxng,
    };
    let settings = tool::Settings {
        enabled,
        disabled,
        fetch_hosts,
        search_engine,
        search_url,
    };
    tool::catalog(&settings).map_err(|unknown| {
        let key = if config.tools.enabled.contains(&unknown.name) {
            "tools.enabled"
        } else {
            "tools.disabled"
        };
        let hint = match protocol::nearest::nearest(&unknown.name, &unknown.known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", unknown.known.join(", ")),
        };
        ConfigError::in_value(config, key, format!("`{key}`: {unknown}"), Some(hint))
    })
}

/// Whether `web_search` has somebody to ask.
fn searches(config: &Config) -> Result<(), ConfigError> {
    let url = config.tools.search_url.as_deref();
    let wrong = |key, message: &str| {
        let hint = "write it as search_url = \"https://searx.example/search\"".to_owned();
        Err(ConfigError::in_value(config, key, message.to_owned(), Some(hint)))
    };
    match url {
        None if config.tools.search_engine == config::SearchEngine::Searxng => wrong(
            "tools.search_engine",
            "searxng answers at an address of yours, and `search_url` is missing",
        ),
        Some(url) if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) => {
            wrong("tools.search_url", "`search_url` is no address of the web")
        }
        _ => Ok(()),
    }
}
