//! `trust.*`: what a project's own file asks for, and the person's word on that very content.

use super::Api;
use super::client::Client;
use crate::config::project;
use crate::target::project_root;
use protocol::trust::{TrustGetParams, TrustSetParams, TrustView};
use protocol::{ErrorKind, RpcError};
use std::path::Path;
use std::sync::Arc;

pub(super) async fn get(api: Arc<Api>, _: Arc<Client>, params: TrustGetParams) -> Result<TrustView, RpcError> {
    view(&api, &root_of(&params.cwd)?)
}

pub(super) async fn set(api: Arc<Api>, _: Arc<Client>, params: TrustSetParams) -> Result<TrustView, RpcError> {
    let root = root_of(&params.cwd)?;
    let trust = &api.registry.deps().projects.trust;
    match params.hash {
        None => trust.take_back(&root).map_err(|error| error.told())?,
        Some(hash) => {
            let file = project::open(&root).map_err(|error| error.told())?;
            let identity = file.map(|file| file.identity).filter(|identity| identity.hash == hash);
            let identity = identity.ok_or_else(|| {
                RpcError::new(
                    ErrorKind::DigestMismatch,
                    "the project's file is not the one that was shown",
                )
                .hint("look at it again: agentctl trust")
            })?;
            trust.give(identity).map_err(|error| error.told())?;
        }
    }
    view(&api, &root)
}

fn root_of(cwd: &str) -> Result<std::path::PathBuf, RpcError> {
    let path = Path::new(cwd);
    if path.is_absolute() && path.is_dir() {
        return Ok(project_root(path));
    }
    Err(RpcError::new(
        ErrorKind::InvalidParams,
        format!("{cwd} is not a directory with an absolute path"),
    ))
}

fn view(api: &Api, root: &Path) -> Result<TrustView, RpcError> {
    let projects = &api.registry.deps().projects;
    let file = project::open(root).map_err(|error| error.told())?;
    let now = projects.load(root).map_err(|error| error.told())?;
    Ok(TrustView {
        root: root.display().to_string(),
        file: project::path(root).display().to_string(),
        // Of the content that is shown, so that what is trusted is what was read.
        hash: file.as_ref().map(|file| file.identity.hash.clone()),
        text: file.map(|file| file.text),
        trusted: now.trusted,
        ignored: now.ignored,
    })
}
