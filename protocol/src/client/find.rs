//! Which socket: the places are tried in order, and the first that answers must belong to a process of our own user.

use super::error::ClientError;
use crate::place::{self, LockFile};
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// Connects to the first place where a daemon listens.
pub(super) async fn connect() -> Result<(UnixStream, PathBuf), ClientError> {
    let mut failure = None;
    for socket in candidates()? {
        match UnixStream::connect(&socket).await {
            Ok(stream) => {
                check_owner(&stream, &socket)?;
                return Ok((stream, socket));
            }
            Err(error) => failure = failure.or(Some(ClientError::not_listening(&socket, &error))),
        }
    }
    Err(failure.unwrap_or(ClientError::Lost))
}

/// The place the environment or the default names, with the lock file's between the two.
fn candidates() -> Result<Vec<PathBuf>, ClientError> {
    let own = place::socket()?;
    let Some(locked) = locked_socket() else {
        return Ok(vec![own]);
    };
    let from_environment = std::env::var_os("AGENTD_SOCKET").is_some_and(|value| !value.is_empty());
    let mut places = if from_environment {
        vec![own, locked]
    } else {
        vec![locked, own]
    };
    places.dedup();
    Ok(places)
}

/// What the lock file says. Whether that daemon lives shows when it is connected to.
fn locked_socket() -> Option<PathBuf> {
    let text = std::fs::read_to_string(LockFile::path(&place::state_dir().ok()?)).ok()?;
    Some(LockFile::parse(&text)?.socket)
}

/// Whoever listens gets our token and our keys, so it must be ourselves.
fn check_owner(stream: &UnixStream, socket: &Path) -> Result<(), ClientError> {
    let uid = stream.peer_cred().map(|peer| peer.uid());
    let own = rustix::process::geteuid().as_raw();
    match uid {
        Ok(uid) if uid == own => Ok(()),
        Ok(uid) => Err(ClientError::Foreign {
            socket: socket.to_owned(),
            uid,
        }),
        Err(error) => Err(ClientError::not_listening(socket, &error)),
    }
}
