//! Further directories that a client names for a session: found, held against what must not be added, bounded.

use super::client::Client;
use super::{Api, blocking};
use crate::session::too_many_roots;
use crate::target::{ADDED_ROOTS_LIMIT, added_root};
use protocol::{ErrorKind, RpcError};
use std::path::{Path, PathBuf};

/// The directories that `asked` means, without links, in that order.
///
/// # Errors
/// Too many of them, or one that must not be added; then none is.
pub(super) async fn added(api: &Api, client: &Client, asked: &[String]) -> Result<Vec<String>, RpcError> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    if asked.len() > ADDED_ROOTS_LIMIT {
        return Err(too_many_roots());
    }
    let named = client.introduced().environment.get("HOME").map(PathBuf::from);
    let homes: Vec<PathBuf> = named.into_iter().chain(protocol::place::home()).collect();
    let own = api.registry.deps().hidden.clone();
    let asked = asked.to_vec();
    let look = move || asked.iter().map(|path| one(path, &homes, &own)).collect();
    blocking(look).await?
}

fn one(asked: &str, homes: &[PathBuf], own: &[PathBuf]) -> Result<String, RpcError> {
    let path = added_root(Path::new(asked), homes, own)
        .map_err(|error| RpcError::new(ErrorKind::InvalidParams, error.to_string()).hint(error.hint()))?;
    Ok(path.to_string_lossy().into_owned())
}

/// What `asked` means now, whether or not it may be added: to know a request again.
pub(super) async fn meant(asked: &[String]) -> Result<Vec<String>, RpcError> {
    let asked = asked.to_vec();
    let meant = |path: String| match Path::new(&path).canonicalize() {
        Ok(found) => found.to_string_lossy().into_owned(),
        Err(_) => path,
    };
    blocking(move || asked.into_iter().map(meant).collect()).await
}
