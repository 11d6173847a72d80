//! The daemon's end: no new turn is taken, those that run get a time, then everything stops.

use crate::session::Registry;
use std::time::Duration;
use tokio::sync::watch;

/// The daemon's end as everybody sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Drain(watch::Sender<Option<Duration>>);

impl Default for Drain {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Drain {
    /// No new turn from now on; turns that run get `patience`. The shorter of two patiences counts.
    pub(crate) fn begin(&self, patience: Duration) {
        self.0.send_modify(|now| *now = Some(now.map_or(patience, |before| before.min(patience))));
    }

    /// Whether the end has begun.
    pub(crate) fn draining(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits for the end to begin, then for the running turns or until their time is over.
    pub(crate) async fn drained(&self, registry: &Registry) {
        let mut begun = self.0.subscribe();
        let patience = match begun.wait_for(Option::is_some).await {
            Ok(patience) => patience.unwrap_or_default(),
            Err(_) => Duration::ZERO,
        };
        let quiet = async {
            for handle in registry.living() {
                let mut live = handle.live();
                // A turn that only waits for a person is parked at once: it goes on after the next start.
                let _ = live.wait_for(|live| live.snapshot.turn.is_none() || !live.snapshot.approvals.is_empty()).await;
            }
        };
        let _ = tokio::time::timeout(patience, quiet).await;
    }
}
