//! Keys: which model answers, and the one place each profile's key comes from.
//!
//! A key has exactly one source and no other is tried: what the user wrote decides, never what happens to be set. Keys that
//! clients send live in memory alone. No key, no output of a key command and no content of a key file appears in an error.

mod choose;
mod command;
mod error;
mod fetch;
mod keyring;
pub mod login;
mod redact;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::{ExposeSecret, SecretString};

use crate::config::Config;
use crate::config::profile::{KeySource, Profile};

pub use choose::{Choice, choose};
pub use command::{GuardedCommands, RunCommand};
pub use error::AuthError;
pub use keyring::{Keyring, KeyringError};
pub use login::Logins;
pub use redact::{Redactor, Stream as RedactedStream};

/// Keys that the demo model proposes to set.
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// A provider named by a client's environment alone, when no profile is configured. Never one without the other: a foreign
/// address must not get a key that was meant for another.
const BASE_URL: &str = "AGENTD_BASE_URL";
const BASE_URL_KEY: &str = "AGENTD_API_KEY";

/// Bytes of a key; tokens of some providers have a few thousand.
const KEY_BYTES: usize = 16 * 1024;

/// The keys the daemon holds and the names it may ask clients for.
pub struct Keys {
    /// Only names the user's own configuration gives a meaning, each with whom it belongs to: nothing else of a client's
    /// environment is ever asked for.
    asked: BTreeMap<String, String>,
    held: Mutex<Held>,
    sources: Sources,
    /// Learns every key as soon as it is held.
    redactor: Redactor,
}

/// Where keys come from that neither the configuration nor a client holds. Clones share them.
#[derive(Clone)]
pub struct Sources {
    /// Runs key commands.
    pub run: Arc<dyn RunCommand>,
    /// Has entries by name.
    pub keyring: Keyring,
    /// Has the tokens of people who have logged in.
    pub logins: Arc<Logins>,
}

#[derive(Default)]
struct Held {
    /// By name of the variable; bounded by `asked`.
    offered: BTreeMap<String, SecretString>,
    /// What key commands printed, by the command; bounded by the configuration.
    printed: BTreeMap<String, SecretString>,
    /// What the keyring gave, by the entry's name; bounded by the configuration.
    opened: BTreeMap<String, SecretString>,
}

impl Keys {
    /// No keys but those in `config`, and what `sources` will give; `redactor` learns every key that is ever held.
    pub fn new(config: &Config, sources: Sources, redactor: Redactor) -> Self {
        for profile in config.models.values() {
            redactor.learn(&profile.name, written(profile));
        }
        Self {
            asked: asked(config),
            held: Mutex::default(),
            sources,
            redactor,
        }
    }

    /// The same for another configuration; what clients have sent stays where it still means something.
    pub fn renewed(&self, config: &Config) -> Self {
        self.sources.logins.follow(config);
        let asked = asked(config);
        let offered = self
            .held()
            .offered
            .clone()
            .into_iter()
            .filter(|(name, _)| asked.contains_key(name))
            .collect();
        let held = Held {
            offered,
            ..Held::default()
        };
        Self {
            held: Mutex::new(held),
            ..Self::new(config, self.sources.clone(), self.redactor.clone())
        }
    }

    /// Names of variables that clients are asked for and none has sent. Address and key of a provider named by the
    /// environment alone are asked for together.
    pub fn lacks(&self) -> Vec<String> {
        let held = self.held();
        let has = |name: &str| held.offered.contains_key(name);
        let lacks = |name: &&String| !has(name) || (name.as_str() == BASE_URL_KEY && !has(BASE_URL));
        self.asked.keys().filter(lacks).cloned().collect()
    }

    /// Whether an address in a client's environment names a provider.
    pub fn takes_base_url(&self) -> bool {
        self.asked.contains_key(BASE_URL)
    }

    /// Takes what one client sends. Names nobody asked for, empty values and overlong ones are left out; a later value
    /// replaces an earlier one.
    ///
    /// # Errors
    /// `BaseUrlAlone`; nothing is taken then.
    pub fn offer(&self, sent: BTreeMap<String, SecretString>) -> Result<(), AuthError> {
        if sent.contains_key(BASE_URL) && !sent.contains_key(BASE_URL_KEY) {
            return Err(AuthError::BaseUrlAlone);
        }
        let mut held = self.held();
        if sent.contains_key(BASE_URL_KEY) {
            // The pair is replaced as one: a key never goes to the address another client named.
            held.offered.remove(BASE_URL);
        }
        for (name, value) in sent {
            let Some(owner) = self.asked.get(&name).filter(|_| fetch::is_usable(&value)) else {
                continue;
            };
            if name != BASE_URL {
                self.redactor.learn(owner, [value.expose_secret()]);
            }
            held.offered.insert(name, value);
        }
        Ok(())
    }

    /// The key of a profile; `None` where its provider wants none. May read a file or run a command.
    ///
    /// # Errors
    /// The source has no key, or not a usable one.
    pub async fn key(&self, profile: &Profile) -> Result<Option<SecretString>, AuthError> {
        let key = self.fetched(profile).await?;
        self.redactor
            .learn(&profile.name, key.as_ref().map(|key| key.expose_secret()));
        Ok(key)
    }

    async fn fetched(&self, profile: &Profile) -> Result<Option<SecretString>, AuthError> {
        match &profile.key {
            KeySource::None => Ok(None),
            KeySource::Env(name) => self.offered(profile, name).map(Some),
            KeySource::File(path) => fetch::from_file(profile, path).await.map(Some),
            KeySource::Command(command) => self.printed(profile, command).await.map(Some),
            KeySource::Literal(key) => fetch::checked(profile, "api_key", key.clone()).map(Some),
            KeySource::Keyring(name) => self.opened(profile, name).await.map(Some),
            KeySource::Login(login) => self.sources.logins.access(&profile.name, login).await.map(Some),
        }
    }

    /// Forgets a key that the provider did not take, so that the next call reads it anew: of a login the access token, which is renewed
    /// then. A key that was replaced meanwhile stays, and so do those that only a client or a person can replace.
    pub fn forget(&self, profile: &Profile, refused: &SecretString) {
        let forget = |kept: &mut BTreeMap<String, SecretString>, source: &str| {
            let same = |key: &SecretString| key.expose_secret() == refused.expose_secret();
            if kept.get(source).is_some_and(same) {
                kept.remove(source);
            }
        };
        match &profile.key {
            KeySource::Command(command) => forget(&mut self.held().printed, command),
            KeySource::Keyring(name) => forget(&mut self.held().opened, name),
            KeySource::Login(login) => self.sources.logins.reject(login, refused),
            // A file is read for each call.
            KeySource::File(_) | KeySource::Env(_) | KeySource::Literal(_) | KeySource::None => {}
        }
    }

    fn offered(&self, profile: &Profile, name: &str) -> Result<SecretString, AuthError> {
        let key = self.held().offered.get(name).cloned();
        key.ok_or_else(|| AuthError::Lacking {
            profile: profile.name.clone(),
            name: name.to_owned(),
        })
    }

    /// A key command may ask a person to unlock something, so what it printed is kept.
    async fn printed(&self, profile: &Profile, command: &str) -> Result<SecretString, AuthError> {
        let kept = self.held().printed.get(command).cloned();
        if let Some(key) = kept {
            return Ok(key);
        }
        let key = fetch::from_command(profile, command, self.sources.run.as_ref(), fetch::COMMAND_LIMIT).await?;
        self.held().printed.insert(command.to_owned(), key.clone());
        Ok(key)
    }

    /// A keyring may ask a person to unlock it, so what it gave is kept.
    async fn opened(&self, profile: &Profile, name: &str) -> Result<SecretString, AuthError> {
        let kept = self.held().opened.get(name).cloned();
        if let Some(key) = kept {
            return Ok(key);
        }
        let key = self
            .sources
            .keyring
            .get(name)
            .await
            .map_err(|error| AuthError::Keyring {
                profile: profile.name.clone(),
                error,
            })?;
        let key = fetch::checked(profile, &format!("api_key_keyring = {name}"), key)?;
        self.held().opened.insert(name.to_owned(), key.clone());
        Ok(key)
    }

    /// Whether a profile wants a login and nobody has logged in. May read a file or the keyring.
    pub async fn needs_login(&self, profile: &Profile) -> bool {
        match &profile.key {
            KeySource::Login(login) => !self.sources.logins.is_in(login).await,
            _ => false,
        }
    }

    /// Whether a client has sent this variable.
    pub fn has(&self, name: &str) -> bool {
        self.held().offered.contains_key(name)
    }

    fn value(&self, name: &str) -> Option<SecretString> {
        self.held().offered.get(name).cloned()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Single insertions and removals leave the maps whole, whatever panicked.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

/// Names clients are asked for, with the profile or provider whose key each is.
fn asked(config: &Config) -> BTreeMap<String, String> {
    if config.models.is_empty() {
        let keys = config
            .catalog
            .providers()
            .iter()
            .map(|provider| (provider.api_key_env.clone(), provider.name.clone()));
        return keys
            .chain([BASE_URL, BASE_URL_KEY].map(|name| (name.to_owned(), name.to_owned())))
            .collect();
    }
    let variable = |profile: &Profile| match &profile.key {
        KeySource::Env(name) => Some((name.clone(), profile.name.clone())),
        _ => None,
    };
    config.models.values().filter_map(variable).collect()
}

/// What a profile has of secrets in the configuration itself: its key, and headers that by their name are one.
fn written(profile: &Profile) -> Vec<&str> {
    let secret = |name: &str| {
        ["auth", "key", "token", "secret", "cookie"]
            .iter()
            .any(|word| name.to_ascii_lowercase().contains(word))
    };
    let headers = profile
        .headers
        .iter()
        .filter(|(name, _)| secret(name))
        .map(|(_, value)| value);
    // Without the scheme, such as `Bearer`, that stands before it.
    let headers = headers.filter_map(|value| value.expose_secret().split_whitespace().last());
    let key = match &profile.key {
        KeySource::Literal(key) => Some(key.expose_secret()),
        _ => None,
    };
    key.into_iter().chain(headers).collect()
}

#[cfg(test)]
mod tests;
