//! What can go wrong between a client and the daemon. The text of each ends with its hint on a line of its own, if it has one.

use crate::place::PlaceError;
use crate::{ErrorKind, RpcError, VERSION};
use std::path::{Path, PathBuf};

/// A failed connection or call.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon could be had; also that a start failed.
    #[error("{reason}\nhint: {hint}")]
    Unreachable { reason: String, hint: String },
    /// Who listens is another user, and gets nothing from us.
    #[error("{} is served by another user, uid {uid}\nhint: set AGENTD_SOCKET to a path of your own", socket.display())]
    Foreign { socket: PathBuf, uid: u32 },
    /// Client and daemon speak different major versions.
    #[error(transparent)]
    Incompatible(RpcError),
    /// The daemon answered with an error.
    #[error(transparent)]
    Rpc(RpcError),
    /// The connection ended before the answer, or while a subscription ran.
    #[error(
        "the connection to agentd was lost\nhint: run the command again; what was accepted goes on without a client"
    )]
    Lost,
    /// The daemon sent what the protocol does not allow.
    #[error(
        "agentd sent something this client cannot read: {0}\nhint: compare the versions with `agentctl version`, then `agentctl daemon restart`"
    )]
    Malformed(String),
    /// The place of the socket cannot be had.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

impl ClientError {
    /// The daemon's stable name of the error, if it is one of the daemon's.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Rpc(error) | Self::Incompatible(error) => Some(error.kind),
            _ => None,
        }
    }

    pub(super) fn unreachable(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unreachable {
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    pub(super) fn not_listening(socket: &Path, error: &std::io::Error) -> Self {
        Self::unreachable(
            format!("no agentd answers at {}: {error}", socket.display()),
            "start it with `agentctl daemon start`",
        )
    }

    /// The daemon speaks `version`, whose major number is not ours.
    pub(super) fn incompatible(version: &str) -> Self {
        let number = |version: &str| {
            version
                .split('.')
                .next()
                .and_then(|major| major.parse::<u32>().ok())
                .unwrap_or(0)
        };
        let hint = if number(version) > number(VERSION) {
            "upgrade this client"
        } else {
            "upgrade agentd, or run `agentctl daemon restart` if it already is"
        };
        let message = format!("agentd speaks protocol {version}, this client {VERSION}");
        Self::Incompatible(RpcError::new(ErrorKind::IncompatibleVersion, message).hint(hint))
    }
}
