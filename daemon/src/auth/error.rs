//! Why there is no key or no model, said so that a person can act on it.

use std::path::PathBuf;

use super::keyring::KeyringError;
use super::login::LoginError;

/// No model or no key. No message holds a key or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No client has sent the variable.
    #[error("model `{profile}` takes its key from {name}, which no client has sent")]
    Lacking {
        /// The profile.
        profile: String,
        /// The variable.
        name: String,
    },
    /// The source has nothing in it.
    #[error("the key of model `{profile}` is empty ({source_name})")]
    Empty {
        /// The profile.
        profile: String,
        /// The source as the configuration names it.
        source_name: String,
    },
    /// The source has something that cannot be a key.
    #[error("the key of model `{profile}` is no single line of text ({source_name})")]
    Malformed {
        /// The profile.
        profile: String,
        /// The source as the configuration names it.
        source_name: String,
    },
    /// The key file cannot be read.
    #[error("the key of model `{profile}` cannot be read from {}: {reason}", .path.display())]
    Unreadable {
        /// The profile.
        profile: String,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The key command failed.
    #[error("the key command of model `{profile}` {reason}")]
    Command {
        /// The profile.
        profile: String,
        /// What it did instead of printing a key.
        reason: String,
    },
    /// The keyring gave no key.
    #[error("the key of model `{profile}` cannot be had: {error}")]
    Keyring {
        /// The profile.
        profile: String,
        /// What the keyring said.
        error: KeyringError,
    },
    /// Nobody has logged in, or the login is over.
    #[error("model `{profile}` needs a login")]
    LoggedOut {
        /// The profile.
        profile: String,
    },
    /// The login cannot be renewed or read.
    #[error("the login of model `{profile}` cannot be used: {error}")]
    Login {
        /// The profile.
        profile: String,
        /// Why not.
        error: LoginError,
    },
    /// An address without the key that belongs to it.
    #[error("AGENTD_BASE_URL is set without AGENTD_API_KEY")]
    BaseUrlAlone,
    /// An address without a model.
    #[error("AGENTD_BASE_URL is set and no model is named")]
    ModelUnnamed,
    /// No profile has this name.
    #[error("no model profile is named `{name}`")]
    UnknownProfile {
        /// The name.
        name: String,
        /// The profiles there are.
        known: Vec<String>,
    },
    /// A provider of the catalog that no profile has a key for.
    #[error("`{name}` needs a key of {provider}, and no profile has one")]
    NoProfileOf {
        /// What was named.
        name: String,
        /// The provider.
        provider: String,
        /// The variable its key usually stands in.
        variable: String,
    },
    /// A server of this machine that no person let answer.
    #[error("{name} at {address} was found on this machine, and nobody said that it may answer")]
    Unconfirmed {
        /// What it is.
        name: String,
        /// Where it listens.
        address: String,
    },
    /// Several profiles and no word on which.
    #[error("several models are configured and none is the default")]
    NoDefault {
        /// The profiles there are.
        known: Vec<String>,
    },
}

impl AuthError {
    /// Whether the same may succeed later without anybody doing anything.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Login { error, .. } if error.passes())
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Lacking { name, .. } => format!("export {name} and run any agentctl command"),
            Self::Empty { .. } | Self::Malformed { .. } => "the source must hold the key and nothing else".to_owned(),
            Self::Unreadable { .. } => "make the file readable for you, or name another source".to_owned(),
            Self::Command { .. } => "run the command yourself to see what it says".to_owned(),
            Self::Keyring { error, .. } => match error {
                KeyringError::NotBuilt => {
                    "use api_key_env, api_key_file or api_key_command, or build agentd with `--features keyring`"
                        .to_owned()
                }
                KeyringError::NoService(_) => {
                    "start one, such as gnome-keyring or kwallet, or use api_key_file or api_key_command".to_owned()
                }
                KeyringError::Silent(_) => "unlock the keyring and try again".to_owned(),
                KeyringError::NoEntry(name) => {
                    format!("put the key there: secret-tool store --label agentd service agentd username {name}")
                }
                KeyringError::Refused(_) => "look at the entry in your keyring's own program".to_owned(),
            },
            Self::LoggedOut { profile } => format!("agentctl login {profile}"),
            Self::Login { profile, error } => error.hint().unwrap_or_else(|| format!("agentctl login {profile}")),
            Self::BaseUrlAlone => "set both: a key meant for another provider is never sent to that address".to_owned(),
            Self::ModelUnnamed => "name the provider's model, for example in AGENTD_MODEL".to_owned(),
            Self::UnknownProfile { known, .. } if known.is_empty() => "no profile is configured".to_owned(),
            Self::UnknownProfile { known, .. } => format!("the profiles are {}", known.join(", ")),
            Self::NoProfileOf { provider, variable, .. } => {
                format!("add a profile of {provider} with api_key_env = \"{variable}\" to the config file")
            }
            Self::Unconfirmed { .. } => "agentctl model confirm shows whose it is and asks".to_owned(),
            Self::NoDefault { known } => format!("set default_model to one of {}", known.join(", ")),
        }
    }
}
