//! The configuration: one value, read from the user's file when the daemon starts and whenever it has changed since, handed
//! down as values. Nothing else reads a file or the environment for a setting.
//!
//! A missing file is fine: every setting has a default. An unknown key or a bad value is an error that names file and
//! line and proposes what was meant; no message repeats a value, since it may be a key in the wrong place.

mod book;
pub mod catalog;
pub mod context;
mod error;
mod load;
pub mod login;
pub mod profile;
pub mod project;
pub mod rules;
pub mod shown;
mod stamp;
mod template;
pub mod trust;
mod values;
mod wording;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use protocol::attention::Attention;
use protocol::{Limits, Mode, Unattended};

use catalog::Catalog;
use context::ContextSettings;
use profile::Profile;

pub use book::{Book, Check};
pub use error::ConfigError;
pub use load::{load, parse};
pub use project::{Project, Projects};
pub use rules::{RuleBook, RuleSet};
pub use template::write_template;

/// Everything the user's file says, with defaults for what it does not.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it was read from, or would have been.
    pub path: PathBuf,
    /// Name of the profile a session uses that names none.
    pub default_model: Option<String>,
    /// The model profiles by name.
    pub models: BTreeMap<String, Profile>,
    /// What is known about models and providers beside the profiles.
    pub catalog: Catalog,
    /// What sessions begin with.
    pub session: SessionDefaults,
    /// What commands may reach.
    pub sandbox: SandboxSettings,
    /// Which files go into prompts.
    pub context: ContextSettings,
    /// The daemon itself.
    pub daemon: DaemonSettings,
    /// Bounds over all sessions.
    pub limits: GlobalLimits,
    /// How people who do not look are told.
    pub notify: NotifySettings,
    /// The values the file holds, for people; nothing secret is among them.
    pub written: Vec<shown::Shown>,
    /// Which tools models are offered, and what they may reach.
    pub tools: ToolSettings,
    /// What a person should know, such as a file that others can read. One sentence each.
    pub notices: Vec<String>,
}

/// `[session]`: what sessions begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionDefaults {
    /// Names of further variables of the client's environment that commands get.
    pub env: Vec<String>,
    /// The approval mode of a session whose maker names none.
    pub mode: Mode,
    /// Model calls in one turn before a person is asked whether to continue.
    pub limits: Limits,
    /// Whether turns of an earlier life of the daemon go on by themselves.
    pub resume: Resume,
    /// What happens to an approval when nobody can answer; `None` leaves it to how the session is made.
    pub unattended: Option<Unattended>,
}

/// Whether turns of an earlier life of the daemon go on by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resume {
    /// They do, unless they are older than [`GlobalLimits::park_after`].
    #[default]
    Auto,
    /// Each waits for somebody to resume it.
    Off,
}

/// `[sandbox]`: what commands may reach, as far as the machine can enforce it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// What they may do to files.
    pub mode: SandboxMode,
    /// Whether they reach the network.
    pub network: SandboxNetwork,
    /// Whose build caches they write.
    pub caches: SandboxCaches,
    /// Whether they may make repositories in the project.
    pub new_repositories: SandboxRepositories,
}

/// What commands may do to files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Everything the user may.
    Off,
    /// Read only.
    ReadOnly,
    /// Write in the project, in temporary directories and in build caches.
    #[default]
    WorkspaceWrite,
}

/// Whether commands reach the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxNetwork {
    /// They do.
    #[default]
    On,
    /// They do not.
    Off,
}

/// Whose build caches commands write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxCaches {
    /// The user's own.
    #[default]
    Shared,
    /// One set for each project.
    Private,
}

/// Whether commands may make repositories in the project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxRepositories {
    /// They may not.
    #[default]
    Refuse,
    /// They may.
    Allow,
}

/// `[daemon]`: the daemon itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Time without client, turn, approval or job after which a daemon that a client started ends; `None`: never.
    pub idle_timeout: Option<Duration>,
}

/// `[limits]`: bounds over all sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlobalLimits {
    /// How often a model call is tried again after a transient failure; 0 switches it off.
    pub retries: u32,
    /// A turn whose last event is older waits, after a restart, for somebody to resume it.
    pub park_after: Duration,
    /// Idle time after which a session leaves memory.
    pub passivate_after: Duration,
    /// US dollars that the model calls of one session may cost before a person is asked whether to go on; `None`: any.
    pub cost_per_session_usd: Option<f64>,
    /// The same for all sessions in a day, UTC.
    pub cost_per_day_usd: Option<f64>,
    /// Model calls that one provider is asked to answer at once.
    pub calls_per_provider: NonZeroUsize,
}

/// Enough that sessions side by side do not wait for each other, and less than any provider takes for an attack.
const CALLS_PER_PROVIDER: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// `[notify]`: how people who do not look are told of approvals that wait and of long turns that end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifySettings {
    /// A program and its arguments, started without a shell; empty: none.
    pub command: Vec<String>,
    /// Whether the desktop shows it, by `notify-send`.
    pub desktop: bool,
    /// When the daemon tells.
    pub when: When,
    /// When and how clients do.
    pub attention: Attention,
}

/// When the daemon tells what happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// While no client is there through which a person would see it.
    #[default]
    Alone,
    Always,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            desktop: true,
            when: When::default(),
            attention: Attention::default(),
        }
    }
}

/// `[tools]`: which tools models are offered, and what they may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Tools to offer that are off by default.
    pub enabled: Vec<String>,
    /// Tools not to offer.
    pub disabled: Vec<String>,
    /// Hosts that web tools may reach although they are not public: `host` or `host:port`.
    pub fetch_hosts: Vec<String>,
    /// Who answers `web_search`.
    pub search_engine: SearchEngine,
    /// Where that engine answers; its usual address if there is one.
    pub search_url: Option<String>,
}

/// Who answers `web_search`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchEngine {
    #[default]
    DuckDuckGo,
    Searxng,
}

impl Config {
    /// The configuration of an empty file at `path`.
    pub fn defaults(path: PathBuf) -> Self {
        Self {
            path,
            default_model: None,
            models: BTreeMap::new(),
            catalog: Catalog::shipped(),
            session: SessionDefaults::default(),
            sandbox: SandboxSettings::default(),
            context: ContextSettings::default(),
            daemon: DaemonSettings::default(),
            limits: GlobalLimits::default(),
            notify: NotifySettings::default(),
            written: Vec::new(),
            tools: ToolSettings::default(),
            notices: Vec::new(),
        }
    }

    /// Names of the variables that profiles take their keys from: no command sees them unless `[session] env` names them.
    pub fn key_variables(&self) -> Vec<String> {
        let names = self.models.values().filter_map(|profile| match &profile.key {
            profile::KeySource::Env(name) => Some(name.clone()),
            _ => None,
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            idle_timeout: Some(Duration::from_secs(30 * 60)),
        }
    }
}

impl Default for GlobalLimits {
    fn default() -> Self {
        Self {
            retries: 4,
            park_after: Duration::from_secs(15 * 60),
            passivate_after: Duration::from_secs(5 * 60),
            cost_per_session_usd: None,
            cost_per_day_usd: None,
            calls_per_provider: CALLS_PER_PROVIDER,
        }
    }
}
