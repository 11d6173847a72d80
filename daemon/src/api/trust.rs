//! `trust.*`: what a project's own file asks for, and the person's word on that very content.

use super::Api;
use super::rule::directory;
use crate::config::project::{self, File};
use crate::config::trust::Pin;
use crate::session::pins;
use crate::target::project_root;
use protocol::trust::{TrustGetParams, TrustSetParams, TrustView};
use protocol::{ErrorKind, RpcError};
use std::path::Path;

pub(super) fn get(api: &Api, params: TrustGetParams) -> Result<TrustView, RpcError> {
    view(api, &project_root(directory(&params.cwd)?))
}

pub(super) fn set(api: &Api, params: TrustSetParams) -> Result<TrustView, RpcError> {
    let root = project_root(directory(&params.cwd)?);
    let trust = &api.registry.deps().projects.trust;
    match params.hash {
        None => trust.take_back(&root).map_err(|error| error.told())?,
        Some(hash) => {
            let file = project::open(&root).map_err(|error| error.told())?;
            let file = file.filter(|file| file.identity.hash == hash).ok_or_else(|| {
                RpcError::new(
                    ErrorKind::DigestMismatch,
                    "the project's file is not the one that was shown",
                )
                .hint("look at it again: agentctl trust")
            })?;
            let scripts = scripts(api, &root, &file)?;
            trust.give(file.identity, scripts).map_err(|error| error.told())?;
        }
    }
    view(api, &root)
}

fn view(api: &Api, root: &Path) -> Result<TrustView, RpcError> {
    let projects = &api.registry.deps().projects;
    let file = project::open(root).map_err(|error| error.told())?;
    let now = projects.load(root).map_err(|error| error.told())?;
    let scripts = match &file {
        Some(file) => scripts(api, root, file)?,
        None => Vec::new(),
    };
    let mut scripts: Vec<String> = scripts.into_iter().map(|pin| pin.path).collect();
    scripts.dedup();
    Ok(TrustView {
        root: root.display().to_string(),
        file: project::path(root).display().to_string(),
        // Of the content that is shown, so that what is trusted is what was read.
        hash: file.as_ref().map(|file| file.identity.hash.clone()),
        text: file.map(|file| file.text),
        trusted: now.trusted,
        ignored: now.ignored,
        scripts,
    })
}

/// The scripts that the file's allow rules name, as they are now.
fn scripts(api: &Api, root: &Path, file: &File) -> Result<Vec<Pin>, RpcError> {
    let rules = project::rules_of(file).map_err(|error| error.told())?;
    pins(api.registry.deps(), root, &rules).map_err(|reason| {
        RpcError::new(
            ErrorKind::InvalidConfig,
            format!("the file cannot be trusted: {reason}"),
        )
    })
}
