//! How many calls one provider answers at once, over all sessions: the next one waits for its turn, and stops waiting with the call
//! it is for.

use crate::provider::{ModelError, ModelReply, ModelRequest, Origin, Provider, Sink};
use async_trait::async_trait;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Providers whose calls are counted; more than a person uses. Beyond it those nobody calls are forgotten.
const PROVIDERS: usize = 64;

/// The calls of all providers. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots(Arc<Mutex<ByAddress>>);

/// By a provider's address and the limit that counts there.
type ByAddress = HashMap<(String, NonZeroUsize), Arc<Semaphore>>;

impl Slots {
    /// `provider`, of whose address at most `limit` calls run.
    pub(crate) fn around(&self, provider: Arc<dyn Provider>, limit: NonZeroUsize) -> Arc<dyn Provider> {
        let origin = provider.origin().0;
        // A provider's wires share its limits.
        let address = origin.split_once(' ').map_or(origin.as_str(), |(_, address)| address);
        Arc::new(Counted {
            slots: self.of(address, limit),
            provider,
        })
    }

    fn of(&self, address: &str, limit: NonZeroUsize) -> Arc<Semaphore> {
        // Single insertions and removals leave the map whole, whatever panicked.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= PROVIDERS {
            slots.retain(|_, slots| Arc::strong_count(slots) > 1);
        }
        let new = || Arc::new(Semaphore::new(limit.get().min(Semaphore::MAX_PERMITS)));
        Arc::clone(slots.entry((address.to_owned(), limit)).or_insert_with(new))
    }
}

/// A provider whose calls are counted.
struct Counted {
    provider: Arc<dyn Provider>,
    slots: Arc<Semaphore>,
}

#[async_trait]
impl Provider for Counted {
    fn origin(&self) -> Origin {
        self.provider.origin()
    }

    async fn call(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<ModelReply, ModelError> {
        // Never closed, so this only ever waits.
        let _slot = self.slots.acquire().await;
        self.provider.call(request, sink).await
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn number(number: usize) -> NonZeroUsize {
        NonZeroUsize::new(number).unwrap()
    }

    #[test]
    fn wires_of_one_address_share_its_slots_and_a_changed_limit_counts_anew() {
        let slots = Slots::default();
        let first = slots.of("https://a.example", number(2));
        assert!(Arc::ptr_eq(&first, &slots.of("https://a.example", number(2))));
        assert!(!Arc::ptr_eq(&first, &slots.of("https://b.example", number(2))));
        assert_eq!(slots.of("https://a.example", number(5)).available_permits(), 5);
    }

    #[test]
    fn providers_nobody_calls_are_forgotten() {
        let slots = Slots::default();
        let kept = slots.of("https://kept.example", number(1));
        for count in 0..2 * PROVIDERS {
            slots.of(&format!("https://{count}.example"), number(1));
        }
        assert!(slots.0.lock().unwrap().len() <= PROVIDERS);
        assert!(Arc::ptr_eq(&kept, &slots.of("https://kept.example", number(1))));
    }
}
