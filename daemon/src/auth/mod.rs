//! Keys: which model answers, and the one place each profile's key comes from.
//!
//! A key has exactly one source and no other is tried: what the user wrote decides, never what happens to be set. Keys that
//! clients send live in memory alone. No key, no output of a key command and no content of a key file appears in an error.

mod choose;
mod command;
mod error;
mod fetch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::SecretString;

use crate::config::Config;
use crate::config::profile::{KeySource, Profile};

pub use choose::{Choice, choose};
pub use command::{GuardedCommands, RunCommand};
pub use error::AuthError;

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
    /// Only names the user's own configuration gives a meaning: nothing else of a client's environment is ever asked for.
    asked: BTreeSet<String>,
    held: Mutex<Held>,
    run: Arc<dyn RunCommand>,
}

#[derive(Default)]
struct Held {
    /// By name of the variable; bounded by `asked`.
    offered: BTreeMap<String, SecretString>,
    /// What key commands printed, by the command; bounded by the configuration.
    printed: BTreeMap<String, SecretString>,
}

impl Keys {
    /// No keys yet. `run` runs the key commands of `config`.
    pub fn new(config: &Config, run: Arc<dyn RunCommand>) -> Self {
        Self {
            asked: asked(config),
            held: Mutex::default(),
            run,
        }
    }

    /// The same for another configuration; what clients have sent stays where it still means something.
    pub fn renewed(&self, config: &Config) -> Self {
        let asked = asked(config);
        let offered = self
            .held()
            .offered
            .clone()
            .into_iter()
            .filter(|(name, _)| asked.contains(name))
            .collect();
        let held = Held {
            offered,
            printed: BTreeMap::new(),
        };
        Self {
            asked,
            held: Mutex::new(held),
            run: Arc::clone(&self.run),
        }
    }

    /// Names of variables that clients are asked for and none has sent. Address and key of a provider named by the
    /// environment alone are asked for together.
    pub fn lacks(&self) -> Vec<String> {
        let held = self.held();
        let has = |name: &str| held.offered.contains_key(name);
        let lacks = |name: &&String| !has(name) || (name.as_str() == BASE_URL_KEY && !has(BASE_URL));
        self.asked.iter().filter(lacks).cloned().collect()
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
            if self.asked.contains(&name) && fetch::is_usable(&value) {
                held.offered.insert(name, value);
            }
        }
        Ok(())
    }

    /// The key of a profile; `None` where its provider wants none. May read a file or run a command.
    ///
    /// # Errors
    /// The source has no key, or not a usable one.
    pub async fn key(&self, profile: &Profile) -> Result<Option<SecretString>, AuthError> {
        match &profile.key {
            KeySource::None => Ok(None),
            KeySource::Env(name) => self.offered(profile, name).map(Some),
            KeySource::File(path) => fetch::from_file(profile, path).await.map(Some),
            KeySource::Command(command) => self.printed(profile, command).await.map(Some),
            KeySource::Literal(key) => fetch::checked(profile, "api_key", key.clone()).map(Some),
            KeySource::Keyring(_) => Err(AuthError::NotBuilt {
                profile: profile.name.clone(),
                source_name: "api_key_keyring",
            }),
            KeySource::Login => Err(AuthError::NotBuilt {
                profile: profile.name.clone(),
                source_name: "auth = \"login\"",
            }),
        }
    }

    /// Forgets what a profile's key command printed, because the provider did not take it.
    pub fn forget(&self, profile: &Profile) {
        if let KeySource::Command(command) = &profile.key {
            self.held().printed.remove(command);
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
        let key = fetch::from_command(profile, command, self.run.as_ref(), fetch::COMMAND_LIMIT).await?;
        self.held().printed.insert(command.to_owned(), key.clone());
        Ok(key)
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

/// Names clients are asked for.
fn asked(config: &Config) -> BTreeSet<String> {
    if config.models.is_empty() {
        let keys = config.catalog.providers().iter().map(|provider| provider.api_key_env.clone());
        return keys.chain([BASE_URL, BASE_URL_KEY].map(str::to_owned)).collect();
    }
    config.key_variables().into_iter().collect()
}

#[cfg(test)]
mod tests;
