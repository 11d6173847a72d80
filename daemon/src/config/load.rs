//! Reading the user's file into a `Config`: tables as written, then checked against each other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::num::{NonZeroU32, NonZeroUsize};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use protocol::attention::{Attention, Signal};
use serde::Deserialize;
use toml::Spanned;

use super::catalog::Catalog;
use super::context::{self, Owner, WrittenContext};
use super::error::ConfigError;
use super::profile::{KeySource, Profile};
use super::values::{Dollars, ModeWord, ResumeWord, Span, UnattendedWord};
use super::{
    Config, DaemonSettings, GlobalLimits, NotifySettings, SandboxCaches, SandboxMode, SandboxNetwork,
    SandboxRepositories, SandboxSettings, SearchEngine, SessionDefaults, ToolSettings, When, shown, wording,
};

/// Bytes of a configuration file; a real one has a few kilobytes.
const FILE_BYTES: u64 = 1024 * 1024;

/// Bits of a file's mode that let others read it.
const OTHERS: u32 = 0o077;

/// The file as written.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Written {
    default_model: Option<Spanned<String>>,
    models: BTreeMap<Spanned<String>, Profile>,
    session: WrittenSession,
    sandbox: WrittenSandbox,
    context: WrittenContext,
    daemon: WrittenDaemon,
    limits: WrittenLimits,
    notify: WrittenNotify,
    tools: WrittenTools,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenSession {
    env: Vec<Spanned<String>>,
    mode: Option<ModeWord>,
    max_steps: Option<NonZeroU32>,
    resume: Option<ResumeWord>,
    unattended: Option<UnattendedWord>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenSandbox {
    pub(super) mode: Option<SandboxMode>,
    pub(super) network: Option<bool>,
    pub(super) caches: Option<SandboxCaches>,
    pub(super) new_repositories: Option<SandboxRepositories>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenDaemon {
    idle_timeout: Option<Span>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenLimits {
    retries: Option<u32>,
    park_after: Option<Span>,
    passivate_after: Option<Span>,
    cost_per_session_usd: Option<Dollars>,
    cost_per_day_usd: Option<Dollars>,
    calls_per_provider: Option<NonZeroUsize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenNotify {
    command: Vec<String>,
    desktop: Option<bool>,
    when: When,
    after: Option<Span>,
    terminal: Signal,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenTools {
    enabled: Vec<String>,
    disabled: Vec<String>,
    fetch_hosts: Vec<String>,
    search_engine: SearchEngine,
    search_url: Option<String>,
}

/// Reads the file at `path`, the defaults if there is none, and the catalog beside it.
///
/// # Errors
/// A file that cannot be read, is no TOML, or says something the daemon does not know.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    let Some((text, mode)) = read(path)? else {
        let defaults = Config::defaults(path.to_path_buf());
        return Ok(Config {
            catalog: Catalog::beside(path)?,
            ..defaults
        });
    };
    let mut config = parse(path, &text)?;
    config.catalog = Catalog::beside(path)?;
    let holds_key = config
        .models
        .values()
        .any(|profile| matches!(profile.key, KeySource::Literal(_)));
    if holds_key && mode & OTHERS != 0 {
        let path = path.display();
        config
            .notices
            .push(format!("{path} holds a key and others may read it: chmod 600 {path}"));
    }
    Ok(config)
}

/// The configuration that `text` says; `path` is where it stands, for messages and for relative names of key files.
///
/// # Errors
/// As `load`, the reading apart.
pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let written: Written = toml::from_str(text).map_err(|error| ConfigError::from_toml(path, text, &error))?;
    let mut config = Config::defaults(path.to_path_buf());
    config.models = models(path, text, written.models)?;
    config.default_model = default_model(path, text, written.default_model, &config.models)?;
    config.session = session(path, text, written.session)?;
    config.sandbox = sandbox(&written.sandbox);
    config.context = context::read(path, text, written.context, Owner::Person)?;
    config.daemon = daemon(&written.daemon);
    config.limits = limits(&written.limits);
    config.notify = notify(written.notify);
    config.written = shown::of(text);
    let WrittenTools {
        enabled,
        disabled,
        fetch_hosts,
        search_engine,
        search_url,
    } = written.tools;
    config.tools = ToolSettings {
        enabled,
        disabled,
        fetch_hosts,
        search_engine,
        search_url,
    };
    Ok(config)
}

/// The text and mode of the file; `None` where there is none.
pub(super) fn read(path: &Path) -> Result<Option<(String, u32)>, ConfigError> {
    let unreadable = |reason: &dyn std::fmt::Display| ConfigError::Unreadable {
        path: path.to_path_buf(),
        reason: reason.to_string(),
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let mode = file
        .metadata()
        .map_err(|error| unreadable(&error))?
        .permissions()
        .mode();
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(unreadable(&"it is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8 text"))?;
    Ok(Some((text, mode)))
}

fn models(
    path: &Path,
    text: &str,
    written: BTreeMap<Spanned<String>, Profile>,
) -> Result<BTreeMap<String, Profile>, ConfigError> {
    let mut models = BTreeMap::new();
    for (name, mut profile) in written {
        let span = name.span();
        let name = name.into_inner();
        if !is_profile_name(&name) {
            let message = "a profile's name has 1 to 64 letters, digits, `.`, `_` and `-`".to_owned();
            return Err(ConfigError::at(path, text, Some(span), message, None));
        }
        profile.name.clone_from(&name);
        if let KeySource::File(file) = &profile.key {
            profile.key = KeySource::File(absolute(path, file));
        }
        models.insert(name, profile);
    }
    Ok(models)
}

fn is_profile_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

/// A key file's name, from the home directory after `~/`, else from the directory of the configuration.
fn absolute(config: &Path, file: &Path) -> PathBuf {
    if let Ok(below) = file.strip_prefix("~")
        && let Ok(home) = protocol::place::home()
    {
        return home.join(below);
    }
    config.parent().map_or_else(|| file.to_path_buf(), |dir| dir.join(file))
}

fn default_model(
    path: &Path,
    text: &str,
    written: Option<Spanned<String>>,
    models: &BTreeMap<String, Profile>,
) -> Result<Option<String>, ConfigError> {
    let Some(written) = written else { return Ok(None) };
    let span = written.span();
    let name = written.into_inner();
    if models.contains_key(&name) {
        return Ok(Some(name));
    }
    let known: Vec<&str> = models.keys().map(String::as_str).collect();
    let hint = match wording::nearest(&name, &known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.is_empty() => "add a [models.NAME] table".to_owned(),
        None => format!("the profiles are {}", known.join(", ")),
    };
    let message = "`default_model` names no profile of this file".to_owned();
    Err(ConfigError::at(path, text, Some(span), message, Some(hint)))
}

fn session(path: &Path, text: &str, written: WrittenSession) -> Result<SessionDefaults, ConfigError> {
    let mut session = SessionDefaults::default();
    for name in written.env {
        let span = name.span();
        let name = name.into_inner();
        if !is_variable_name(&name) {
            let message = "`env` lists names of variables: letters, digits and `_`".to_owned();
            let hint = "name the variable only; its value comes from the client".to_owned();
            return Err(ConfigError::at(path, text, Some(span), message, Some(hint)));
        }
        session.env.push(name);
    }
    if let Some(mode) = written.mode {
        session.mode = mode.into();
    }
    if let Some(steps) = written.max_steps {
        session.limits.max_steps = steps.get();
    }
    if let Some(resume) = written.resume {
        session.resume = resume.into();
    }
    session.unattended = written.unattended.map(|UnattendedWord(unattended)| unattended);
    Ok(session)
}

fn is_variable_name(name: &str) -> bool {
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn sandbox(written: &WrittenSandbox) -> SandboxSettings {
    SandboxSettings {
        mode: written.mode.unwrap_or_default(),
        network: written.network.map(network).unwrap_or_default(),
        caches: written.caches.unwrap_or_default(),
        new_repositories: written.new_repositories.unwrap_or_default(),
    }
}

/// What `network = true` or `false` means.
pub(super) fn network(reached: bool) -> SandboxNetwork {
    if reached {
        SandboxNetwork::On
    } else {
        SandboxNetwork::Off
    }
}

fn daemon(written: &WrittenDaemon) -> DaemonSettings {
    let mut daemon = DaemonSettings::default();
    if let Some(Span(idle)) = written.idle_timeout {
        daemon.idle_timeout = (!idle.is_zero()).then_some(idle);
    }
    daemon
}

fn notify(written: WrittenNotify) -> NotifySettings {
    let defaults = NotifySettings::default();
    let turn_after_ms = match written.after {
        None => defaults.attention.turn_after_ms,
        Some(Span(after)) if after.is_zero() => None,
        Some(Span(after)) => u64::try_from(after.as_millis()).ok(),
    };
    NotifySettings {
        command: written.command,
        desktop: written.desktop.unwrap_or(defaults.desktop),
        when: written.when,
        attention: Attention {
            signal: written.terminal,
            turn_after_ms,
        },
    }
}

fn limits(written: &WrittenLimits) -> GlobalLimits {
    let defaults = GlobalLimits::default();
    let or = |span: Option<Span>, default| span.map_or(default, |Span(span)| span);
    GlobalLimits {
        retries: written.retries.unwrap_or(defaults.retries),
        park_after: or(written.park_after, defaults.park_after),
        passivate_after: or(written.passivate_after, defaults.passivate_after),
        cost_per_session_usd: written.cost_per_session_usd.map(|Dollars(limit)| limit),
        cost_per_day_usd: written.cost_per_day_usd.map(|Dollars(limit)| limit),
        calls_per_provider: written.calls_per_provider.unwrap_or(defaults.calls_per_provider),
    }
}

#[cfg(test)]
mod tests;
