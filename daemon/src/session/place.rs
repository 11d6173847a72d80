//! Where a session's calls happen. Opening it asks the file system, which may take its time (a network mount, a disk that spins up), so
//! it is done off the runtime's threads, by whichever effect needs it first, and never by the actor.

use crate::target::sandbox;
use crate::target::{Target, TargetSpec, is_personal};
use crate::tool::{Jobs, Place, ReadSet};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A session's place, opened once when it is first needed. Clones share it.
#[derive(Clone)]
pub(crate) struct LazyPlace(Shared<BoxFuture<'static, Result<Place, String>>>);

/// Whether a command gets what lets it act as the person at the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Personal {
    /// A person has looked at it.
    Yes,
    No,
}

impl LazyPlace {
    /// A place that is not opened yet. `read` is what the model has seen of files, by path.
    pub(super) fn new(spec: TargetSpec, read: &BTreeMap<String, String>, jobs: Jobs) -> Self {
        let seen = ReadSet::default();
        for (path, hash) in read {
            seen.insert(path, hash);
        }
        let open = async move {
            let opened = tokio::task::spawn_blocking(move || Target::open(spec)).await;
            let target = opened
                .map_err(|error| format!("the session's directory could not be opened: {error}"))?
                .map_err(|error| format!("root_gone: {error}"))?;
            Ok(Place {
                target,
                read: seen,
                jobs,
            })
        };
        Self(open.boxed().shared())
    }

    /// The same place, whose commands run in another sandbox.
    pub(super) fn in_sandbox(&self, sandbox: sandbox::Settings) -> Self {
        let before = self.0.clone();
        let narrowed = async move {
            let place = before.await?;
            let target = place.target.with_sandbox(sandbox);
            Ok(Place { target, ..place })
        };
        Self(narrowed.boxed().shared())
    }

    /// The same place with further roots.
    pub(super) fn with_roots(&self, added: Vec<PathBuf>) -> Self {
        let before = self.0.clone();
        let widened = async move {
            let place = before.await?;
            let target = place.target.clone();
            let opened = tokio::task::spawn_blocking(move || target.with_roots(&added)).await;
            let target = opened.map_err(|error| format!("the added directory could not be opened: {error}"))?;
            Ok(Place { target, ..place })
        };
        Self(widened.boxed().shared())
    }

    /// The place.
    ///
    /// # Errors
    /// A directory that is gone; for people and the model.
    pub(crate) async fn get(&self) -> Result<Place, String> {
        self.0.clone().await
    }

    /// The place as a call sees it.
    ///
    /// # Errors
    /// As `get`.
    pub(crate) async fn for_call(&self, personal: Personal) -> Result<Place, String> {
        let place = self.get().await?;
        match personal {
            Personal::Yes => Ok(place),
            Personal::No => tokio::task::spawn_blocking(move || impersonal(place))
                .await
                .map_err(|error| format!("the session's directory could not be looked at: {error}"))?,
        }
    }

    /// Whether opening it went wrong, so that it is worth another try.
    pub(super) fn failed(&self) -> bool {
        matches!(self.0.peek(), Some(Err(_)))
    }
}

/// The place without what lets a command act as the person at the screen.
fn impersonal(place: Place) -> Result<Place, String> {
    let mut environment = place.target.environment().clone();
    environment.retain(|name, _| !is_personal(name));
    let target = place
        .target
        .with_environment(environment)
        .map_err(|error| error.to_string())?;
    Ok(Place { target, ..place })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn spec(root: PathBuf) -> TargetSpec {
        TargetSpec {
            roots: vec![root.clone()],
            cwd: root,
            ..TargetSpec::default()
        }
    }

    #[test]
    fn a_place_is_opened_beside_the_runtime_and_once() -> anyhow::Result<()> {
        let root = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()?;
        runtime.block_on(async {
            // The only thread for such work is busy, as it is when a file system does not answer.
            let (free, busy) = mpsc::sync_channel::<()>(0);
            let work = tokio::task::spawn_blocking(move || busy.recv());
            let place = LazyPlace::new(spec(root.path().to_owned()), &BTreeMap::new(), Jobs::default());
            assert!(
                place.get().now_or_never().is_none(),
                "the runtime's own thread does not wait for files"
            );
            drop(free);
            let _ = work.await?;
            let opened = place.get().await.map_err(anyhow::Error::msg)?;
            opened.read.insert("seen", "hash");
            let again = place.clone().get().now_or_never();
            let again = again
                .ok_or_else(|| anyhow::anyhow!("it is open"))?
                .map_err(anyhow::Error::msg)?;
            assert!(
                again.read.hash_of("seen".as_ref()).is_some(),
                "what one call has read the next one knows"
            );
            anyhow::Ok(())
        })
    }

    #[tokio::test]
    async fn a_directory_that_is_gone_is_told_and_may_be_tried_again() {
        let place = LazyPlace::new(
            spec("/nonexistent/of/no/session".into()),
            &BTreeMap::new(),
            Jobs::default(),
        );
        assert!(!place.failed());
        let told = place.get().await.err().unwrap_or_default();
        assert!(told.starts_with("root_gone: "), "{told}");
        assert!(place.failed());
    }
}
