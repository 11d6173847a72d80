//! The daemon's end: no turn and no job is begun, turns that run get a time, then everything stops. What waits in a queue starts in
//! the daemon's next life.

use super::registry::Registry;
use protocol::frame::{CallState, Phase, Snapshot};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The daemon's end as everybody sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Drain {
    /// Time that running turns get, once the end has begun.
    patience: watch::Sender<Option<Duration>>,
    begun: CancellationToken,
}

/// Whether the daemon's end has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draining {
    Yes,
    No,
}

impl Default for Drain {
    fn default() -> Self {
        Self {
            patience: watch::Sender::new(None),
            begun: CancellationToken::new(),
        }
    }
}

impl Drain {
    /// No new turn from now on; turns that run get `patience`. The shorter of two patiences counts.
    pub(crate) fn begin(&self, patience: Duration) {
        self.begun.cancel();
        self.patience
            .send_modify(|now| *now = Some(now.map_or(patience, |before| before.min(patience))));
    }

    /// Whether the end has begun.
    pub(crate) fn state(&self) -> Draining {
        if self.begun.is_cancelled() {
            Draining::Yes
        } else {
            Draining::No
        }
    }

    /// Cancelled when the end begins.
    pub(crate) fn begun(&self) -> CancellationToken {
        self.begun.clone()
    }

    /// Waits for the end to begin, then for the running turns or until their time is over.
    pub(crate) async fn drained(&self, registry: &Registry) {
        let mut begun = self.patience.subscribe();
        if begun.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let since = Instant::now();
        let quiet = async {
            for handle in registry.living() {
                // Its actor may end first, and then it is as quiet as can be.
                let _ = handle.live().wait_for(|live| quiet(&live.snapshot)).await;
            }
        };
        tokio::pin!(quiet);
        loop {
            let patience = begun.borrow_and_update().unwrap_or_default();
            tokio::select! {
                () = &mut quiet => return,
                () = tokio::time::sleep(patience.saturating_sub(since.elapsed())) => return,
                changed = begun.changed() => if changed.is_err() { return },
            }
        }
    }
}

/// Whether nothing is lost by stopping now: a turn that only waits, for a person or for its resume, goes on after the next start.
fn quiet(snapshot: &Snapshot) -> bool {
    let runs = snapshot.calls.iter().any(|call| call.state == CallState::Running);
    snapshot.turn.is_none() || snapshot.phase == Phase::Parked || (!snapshot.approvals.is_empty() && !runs)
}
