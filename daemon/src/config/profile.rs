//! A model profile: one `[models.NAME]` table of the configuration, checked and with its defaults filled in.
//!
//! Everything that decides where content and key go stands here. Reading the file, merging and fetching the key are done
//! elsewhere; a profile that deserialises has exactly one key source and sane numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::login::{self, Login, Plain};

/// What a reply may cost in tokens unless the profile says otherwise.
pub const DEFAULT_MAX_OUTPUT_TOKENS: u32 = 16_384;

/// One configured model.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Table")]
pub struct Profile {
    /// The table's own name; empty until the loader sets it.
    pub name: String,
    /// The protocol spoken at `base_url`.
    pub wire: Wire,
    /// Where the provider is, without the wire's own path: Anthropic's without `/v1`, the OpenAI wires' with it.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// The one place the key comes from.
    pub key: KeySource,
    /// Size of the context window in tokens; `None` leaves it to the catalog.
    pub context_tokens: Option<u64>,
    /// Tokens of context a session should stay below; `None`: the window less the longest reply.
    pub context_budget_tokens: Option<u64>,
    /// Most tokens of one reply.
    pub max_output_tokens: u32,
    /// Sampling temperature; not sent when `None`.
    pub temperature: Option<f64>,
    /// Nucleus sampling; not sent when `None`.
    pub top_p: Option<f64>,
    /// How much the model should reason; nothing about reasoning is sent when `None`.
    pub effort: Option<Effort>,
    /// Headers added to every request. Their values count as secrets.
    pub headers: BTreeMap<String, SecretString>,
    /// Overrides of the catalog's prices.
    pub prices: Option<Prices>,
    /// Allows plain `http` to a host that is not loopback.
    pub allow_http: bool,
    /// Limits on waiting for the provider.
    pub timeouts: Timeouts,
}

/// A protocol between the daemon and a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// `POST {base_url}/v1/messages`.
    AnthropicMessages,
    /// `POST {base_url}/chat/completions`.
    OpenaiChat,
    /// `POST {base_url}/responses`.
    OpenaiResponses,
    /// The scripted model inside the daemon; no network.
    Demo,
}

impl Wire {
    /// The name used in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Demo => "demo",
        }
    }

    /// The vendor's own address, for a profile that names none.
    fn default_base_url(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "https://api.anthropic.com",
            Self::OpenaiChat | Self::OpenaiResponses => "https://api.openai.com/v1",
            Self::Demo => "",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Wire {
    type Err = ProfileError;

    fn from_str(name: &str) -> Result<Self, ProfileError> {
        [
            Self::AnthropicMessages,
            Self::OpenaiChat,
            Self::OpenaiResponses,
            Self::Demo,
        ]
        .into_iter()
        .find(|wire| wire.as_str() == name)
        .ok_or_else(|| ProfileError::UnknownWire(name.to_owned()))
    }
}

/// How much a model should reason before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// Where the key of a profile comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The variable of this name in a client's environment.
    Env(String),
    /// The contents of this file, without one trailing newline.
    File(PathBuf),
    /// The standard output of this shell command, without one trailing newline.
    Command(String),
    /// The entry of this name in the system's keyring.
    Keyring(String),
    /// The key itself.
    Literal(SecretString),
    /// A token from `agentctl login`.
    Login(Arc<Login>),
    /// The provider wants no key.
    None,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// Tokens sent and not cached.
    pub input: f64,
    /// Tokens received.
    pub output: f64,
    /// Tokens read from the provider's cache; as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens written to the provider's cache; as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// How long the daemon waits for a provider. There is no limit on a whole reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of connecting until the connection stands.
    pub connect: Duration,
    /// From the request until the first byte of the reply.
    pub first_byte: Duration,
    /// Between any two bytes after it; comments and pings count.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(120),
        }
    }
}

/// Why a `[models.NAME]` table is refused. No message contains a value that may be secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProfileError {
    #[error("unknown wire `{0}`: anthropic-messages, openai-chat, openai-responses or demo")]
    UnknownWire(String),
    #[error("no key source: set one of api_key_env, api_key_file, api_key_command, api_key_keyring, api_key or auth")]
    NoKey,
    #[error("more than one key source ({0}): keep exactly one")]
    SeveralKeys(String),
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    #[error("auth = \"login\" and a table [models.NAME.login] with client_id and token_url belong together")]
    LoginApart,
    #[error("a login needs authorize_url or device_url")]
    NoLoginWay,
    #[error("`{key}` of the login: {reason}")]
    LoginAddress { key: &'static str, reason: &'static str },
}

/// The table as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    wire: Wire,
    base_url: Option<String>,
    #[serde(default)]
    model: String,
    api_key_env: Option<String>,
    api_key_file: Option<PathBuf>,
    api_key_command: Option<String>,
    api_key_keyring: Option<String>,
    api_key: Option<String>,
    auth: Option<Auth>,
    login: Option<login::Table>,
    context_tokens: Option<u64>,
    context_budget_tokens: Option<u64>,
    max_output_tokens: Option<u32>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    reasoning: Option<Effort>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    prices: Option<Prices>,
    #[serde(default)]
    allow_http: bool,
    connect_timeout_s: Option<u64>,
    first_byte_timeout_s: Option<u64>,
    idle_timeout_s: Option<u64>,
}

/// `auth = "login"` and `auth = "none"`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Auth {
    Login,
    None,
}

impl TryFrom<Table> for Profile {
    type Error = ProfileError;

    fn try_from(mut table: Table) -> Result<Self, ProfileError> {
        let key = key_source(&mut table)?;
        let base_url = table
            .base_url
            .unwrap_or_else(|| table.wire.default_base_url().to_owned());
        if table.wire != Wire::Demo {
            not_empty("model", &table.model)?;
            not_empty("base_url", &base_url)?;
        }
        at_least_one("context_tokens", table.context_tokens)?;
        at_least_one("context_budget_tokens", table.context_budget_tokens)?;
        at_least_one("max_output_tokens", table.max_output_tokens.map(u64::from))?;
        let defaults = Timeouts::default();
        Ok(Self {
            name: String::new(),
            wire: table.wire,
            base_url,
            model: table.model,
            key,
            context_tokens: table.context_tokens,
            context_budget_tokens: table.context_budget_tokens,
            max_output_tokens: table.max_output_tokens.unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS),
            temperature: table.temperature,
            top_p: table.top_p,
            effort: table.reasoning,
            headers: table
                .headers
                .into_iter()
                .map(|(name, value)| (name, SecretString::from(value)))
                .collect(),
            prices: table.prices,
            allow_http: table.allow_http,
            timeouts: Timeouts {
                connect: seconds("connect_timeout_s", table.connect_timeout_s, defaults.connect)?,
                first_byte: seconds("first_byte_timeout_s", table.first_byte_timeout_s, defaults.first_byte)?,
                idle: seconds("idle_timeout_s", table.idle_timeout_s, defaults.idle)?,
            },
        })
    }
}

/// The one key source of `table`. The demo model needs none.
fn key_source(table: &mut Table) -> Result<KeySource, ProfileError> {
    let named = [
        ("api_key_env", table.api_key_env.take().map(KeySource::Env)),
        ("api_key_file", table.api_key_file.take().map(KeySource::File)),
        ("api_key_command", table.api_key_command.take().map(KeySource::Command)),
        ("api_key_keyring", table.api_key_keyring.take().map(KeySource::Keyring)),
        (
            "api_key",
            table
                .api_key
                .take()
                .map(|key| KeySource::Literal(SecretString::from(key))),
        ),
        ("auth", auth(table)?),
    ];
    let names: Vec<&str> = named
        .iter()
        .filter(|(_, source)| source.is_some())
        .map(|(name, _)| *name)
        .collect();
    if names.len() > 1 {
        return Err(ProfileError::SeveralKeys(names.join(", ")));
    }
    let source = named.into_iter().find_map(|(_, source)| source);
    match source {
        Some(source) => Ok(source),
        None if table.wire == Wire::Demo => Ok(KeySource::None),
        None => Err(ProfileError::NoKey),
    }
}

/// The source that `auth` names, with its login.
fn auth(table: &mut Table) -> Result<Option<KeySource>, ProfileError> {
    let plain = if table.allow_http {
        Plain::Anywhere
    } else {
        Plain::Loopback
    };
    match (table.auth.take(), table.login.take()) {
        (Some(Auth::Login), Some(login)) => Ok(Some(KeySource::Login(Arc::new(login.checked(plain)?)))),
        (Some(Auth::None), None) => Ok(Some(KeySource::None)),
        (None, None) => Ok(None),
        (Some(Auth::Login), None) | (None | Some(Auth::None), Some(_)) => Err(ProfileError::LoginApart),
    }
}

fn not_empty(key: &'static str, value: &str) -> Result<(), ProfileError> {
    if value.trim().is_empty() {
        Err(ProfileError::Empty(key))
    } else {
        Ok(())
    }
}

fn at_least_one(key: &'static str, value: Option<u64>) -> Result<(), ProfileError> {
    if value == Some(0) {
        Err(ProfileError::Zero(key))
    } else {
        Ok(())
    }
}

fn seconds(key: &'static str, value: Option<u64>, default: Duration) -> Result<Duration, ProfileError> {
    at_least_one(key, value)?;
    Ok(value.map_or(default, Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Profile, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn defaults_are_the_documented_ones() -> anyhow::Result<()> {
        let profile = parse("wire = 'anthropic-messages'\nmodel = 'm'\napi_key_env = 'K'")?;
        assert_eq!(profile.base_url, "https://api.anthropic.com");
        assert_eq!(profile.max_output_tokens, 16_384);
        assert_eq!(profile.timeouts, Timeouts::default());
        assert!(profile.temperature.is_none() && profile.effort.is_none());
        assert!(matches!(profile.key, KeySource::Env(name) if name == "K"));
        Ok(())
    }

    #[test]
    fn a_profile_has_exactly_one_key_source() {
        let none = parse("wire = 'openai-chat'\nmodel = 'm'")
            .err()
            .map(|error| error.to_string());
        assert!(none.is_some_and(|text| text.contains("no key source")));
        let two = parse("wire = 'openai-chat'\nmodel = 'm'\napi_key_env = 'A'\nauth = 'none'").err();
        assert!(two.is_some_and(|error| error.message().contains("api_key_env, auth")));
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(parse("wire = 'openai-chat'\nmodel = 'm'\nauth = 'none'\nbase_ulr = 'x'").is_err());
    }

    #[test]
    fn demo_needs_neither_model_nor_key() -> anyhow::Result<()> {
        assert!(matches!(parse("wire = 'demo'")?.key, KeySource::None));
        Ok(())
    }

    #[test]
    fn debug_output_shows_no_secret() -> anyhow::Result<()> {
        let profile =
            parse("wire = 'openai-chat'\nmodel = 'm'\napi_key = 'sk-hidden'\nheaders = { X-Team = 'also-hidden' }")?;
        assert!(!format!("{profile:?}").contains("hidden"));
        Ok(())
    }
}
