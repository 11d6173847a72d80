//! Why a login, a renewal or a logout came to nothing, said so that a person can act on it. No message holds a token or a code.

use protocol::{ErrorKind, RpcError};

/// Longest words of a provider that are repeated, in bytes.
const PROVIDER_WORDS: usize = 500;

/// A login that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The profile takes its key from elsewhere, or there is none of the name.
    #[error("model `{0}` has no login")]
    NoLogin(String),
    /// No profile was named and none is the one that is meant.
    #[error("which model? {}", if .0.is_empty() { "none has a login".to_owned() } else { format!("{} have a login", .0.join(", ")) })]
    Unnamed(Vec<String>),
    /// The profile has no endpoint for the way that was asked for.
    #[error("the login of model `{profile}` has no {endpoint}")]
    NoWay {
        /// The profile.
        profile: String,
        /// The setting it lacks.
        endpoint: &'static str,
    },
    /// No login of this number is under way.
    #[error("no login of this number is under way")]
    Unknown,
    /// Somebody ended it.
    #[error("the login was cancelled")]
    Cancelled,
    /// The person did not finish in time.
    #[error("nobody logged in within {} minutes", .0.as_secs() / 60)]
    TimedOut(std::time::Duration),
    /// The provider said no.
    #[error("{host} refused: {words}")]
    Refused {
        /// Who refused.
        host: String,
        /// The error's name and description, bounded.
        words: String,
    },
    /// The provider's answer to the browser is not for this login, or not from whom it should be.
    #[error("the answer that the browser brought back is not one to this login: {0}")]
    Foreign(&'static str),
    /// The provider answered something that is no answer of its kind.
    #[error("{host} answered something unexpected: {what}")]
    Unexpected {
        /// Who answered.
        host: String,
        /// What was wrong with it, without what it was.
        what: String,
    },
    /// The provider could not be reached.
    #[error("{host} could not be reached: {reason}")]
    Unreachable {
        /// Who was to be reached.
        host: String,
        /// Why not.
        reason: String,
    },
    /// The listener for the browser could not be made.
    #[error("the address that the browser comes back to cannot be listened at: {0}")]
    Listener(String),
    /// Tokens could not be kept or read.
    #[error("the tokens cannot be kept: {0}")]
    Store(String),
}

impl LoginError {
    /// A provider's refusal in its own words.
    pub(super) fn refused(host: &str, words: &str) -> Self {
        let end = words.floor_char_boundary(PROVIDER_WORDS);
        let words = words.get(..end).unwrap_or_default();
        Self::Refused {
            host: host.to_owned(),
            words: words.replace(char::is_control, " "),
        }
    }

    /// Whether the same may succeed later without anybody doing anything.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoLogin(_) | Self::Unnamed(_) => Some(
                "a profile logs in with auth = \"login\" and a table [models.NAME.login]: agentctl config edit"
                    .to_owned(),
            ),
            Self::NoWay { endpoint, .. } if *endpoint == "device_url" => {
                Some("leave out --device to log in with a browser on this machine".to_owned())
            }
            Self::NoWay { .. } => Some("log in by code: agentctl login --device".to_owned()),
            Self::Unknown | Self::Cancelled | Self::TimedOut(_) => Some("begin again: agentctl login".to_owned()),
            Self::Foreign(_) => Some(
                "begin again; if it happens each time, set `issuer` in the login's table to what the provider calls itself"
                    .to_owned(),
            ),
            Self::Unexpected { .. } => Some("check the addresses in the login's table".to_owned()),
            Self::Unreachable { .. } => Some("check the addresses in the login's table, and the network".to_owned()),
            Self::Listener(_) => Some("log in by code, or free the port that `redirect` names".to_owned()),
            Self::Store(_) => Some("a file that is broken can be moved away; log in again then".to_owned()),
            Self::Refused { .. } => None,
        }
    }

    /// As a client is told of it.
    pub(crate) fn told(&self) -> RpcError {
        let kind = match self {
            Self::NoLogin(_) | Self::Unnamed(_) | Self::NoWay { .. } => ErrorKind::InvalidParams,
            Self::Unknown => ErrorKind::LoginNotFound,
            _ => ErrorKind::LoginFailed,
        };
        let told = RpcError::new(kind, self.to_string());
        match self.hint() {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }
}
