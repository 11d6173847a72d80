//! One back-off for each provider, shared by all sessions: when one call learns that the provider has no room, the others wait too
//! instead of asking one after the other. Measured by the monotonic clock. A wait ends at once with the call that waits.

use crate::provider::{Class, ModelError, ModelReply, ModelRequest, Origin, Provider, Sink};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The first pause where the provider names none; it doubles with each refusal after a pause.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause of our own choosing.
const LONGEST_OWN: Duration = Duration::from_secs(30);

/// The longest wait before a call. A provider that asks for more is believed by the call it told so; the others find out themselves.
const LONGEST: Duration = Duration::from_secs(120);

/// Providers that are remembered; more than a person uses. The pause that ends first is forgotten first.
const PROVIDERS: usize = 64;

/// Part of a pause by which calls that wait for its end are spread, so that they do not come all at once.
const SPREAD: f64 = 0.1;

/// The pauses of all providers. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackOffs(Arc<Mutex<HashMap<String, Pause>>>);

#[derive(Debug, Clone, Copy)]
struct Pause {
    length: Duration,
    until: Instant,
    /// Refusals in a row, those during one pause counted once.
    refusals: u32,
}

impl BackOffs {
    /// `provider`, whose calls wait while its address is asked for patience and tell the others when they are.
    pub(crate) fn around(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(Considerate {
            origin: provider.origin(),
            provider,
            pauses: self.clone(),
        })
    }

    /// Until when calls to `address` wait; `None`: they need not.
    fn until(&self, address: &str, now: Instant) -> Option<Pause> {
        self.pauses().get(address).copied().filter(|pause| pause.until > now)
    }

    fn refused(&self, address: &str, asked: Option<Duration>, now: Instant) {
        let mut pauses = self.pauses();
        let before = pauses.get(address).copied();
        let refusals = match before {
            Some(pause) if pause.until > now => pause.refusals,
            Some(pause) => pause.refusals.saturating_add(1),
            None => 1,
        };
        let own = FIRST
            .saturating_mul(1 << (refusals.saturating_sub(1)).min(10))
            .min(LONGEST_OWN);
        let length = asked.filter(|asked| *asked <= LONGEST).unwrap_or(own);
        let until = before.map_or(now + length, |pause| pause.until.max(now + length));
        if before.is_none() && pauses.len() >= PROVIDERS {
            let first = pauses
                .iter()
                .min_by_key(|(_, pause)| pause.until)
                .map(|(address, _)| address.clone());
            first.and_then(|address| pauses.remove(&address));
        }
        pauses.insert(
            address.to_owned(),
            Pause {
                length,
                until,
                refusals,
            },
        );
    }

    fn answered(&self, address: &str, now: Instant) {
        let mut pauses = self.pauses();
        // A call that began before the pause says nothing about its end.
        if pauses.get(address).is_some_and(|pause| pause.until <= now) {
            pauses.remove(address);
        }
    }

    fn pauses(&self) -> MutexGuard<'_, HashMap<String, Pause>> {
        // Single insertions and removals leave the map whole, whatever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A provider whose calls respect the shared back-off.
struct Considerate {
    provider: Arc<dyn Provider>,
    origin: Origin,
    pauses: BackOffs,
}

impl Considerate {
    /// The address alone: a provider's wires share its limits.
    fn address(&self) -> &str {
        self.origin
            .0
            .split_once(' ')
            .map_or(self.origin.0.as_str(), |(_, address)| address)
    }

    async fn wait(&self) {
        let last = Instant::now() + LONGEST;
        while let Some(pause) = self.pauses.until(self.address(), Instant::now()) {
            let spread = pause.length.mul_f64(SPREAD * fastrand::f64());
            let until = (pause.until + spread).min(last);
            tracing::info!(
                address = self.address(),
                wait_ms = (until - Instant::now()).as_millis(),
                "a call waits for its provider"
            );
            tokio::time::sleep_until(until).await;
            if until >= last {
                return;
            }
        }
    }
}

#[async_trait]
impl Provider for Considerate {
    fn origin(&self) -> Origin {
        self.origin.clone()
    }

    async fn call(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<ModelReply, ModelError> {
        self.wait().await;
        let result = self.provider.call(request, sink).await;
        match &result {
            Ok(_) => self.pauses.answered(self.address(), Instant::now()),
            Err(error) if matches!(error.class, Class::RateLimited | Class::Overloaded) => {
                self.pauses.refused(self.address(), error.retry_after, Instant::now());
            }
            Err(_) => {}
        }
        result
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::provider::ItemKind;

    const HERE: &str = "https://models.example";

    /// Says that it has no room.
    struct Full;

    #[async_trait]
    impl Provider for Full {
        fn origin(&self) -> Origin {
            Origin(format!("openai-chat {HERE}"))
        }

        async fn call(&self, _: &ModelRequest, _: &mut dyn Sink) -> Result<ModelReply, ModelError> {
            let after = Some(Duration::from_secs(100));
            Err(ModelError {
                retry_after: after,
                ..ModelError::new(Class::RateLimited, "slow down")
            })
        }
    }

    struct Deaf;

    impl Sink for Deaf {
        fn open(&mut self, _: usize, _: ItemKind) {}
        fn push(&mut self, _: usize, _: &str) {}
    }

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            system: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            max_output_tokens: 1,
            temperature: None,
            top_p: None,
            effort: None,
            cache_key: None,
            interactive: false,
        }
    }

    fn left(pauses: &BackOffs, now: Instant) -> Option<u64> {
        pauses.until(HERE, now).map(|pause| (pause.until - now).as_secs())
    }

    #[tokio::test]
    async fn a_refusal_of_one_session_makes_the_next_call_of_another_wait() {
        let pauses = BackOffs::default();
        let (first, second) = (pauses.around(Arc::new(Full)), pauses.around(Arc::new(Full)));
        assert_eq!(
            first.call(&request(), &mut Deaf).await.unwrap_err().class,
            Class::RateLimited
        );
        assert!(left(&pauses, Instant::now()).is_some_and(|left| (90..=100).contains(&left)));
        // Polled once: it waits, and dropping it ends the wait.
        let (request, mut sink) = (request(), Deaf);
        let call = second.call(&request, &mut sink);
        assert!(
            futures::FutureExt::now_or_never(call).is_none(),
            "the second call did not wait"
        );
    }

    #[test]
    fn a_pause_is_as_long_as_the_provider_asks() {
        let (pauses, now) = (BackOffs::default(), Instant::now());
        pauses.refused(HERE, Some(Duration::from_secs(7)), now);
        assert_eq!(left(&pauses, now), Some(7));
        assert_eq!(left(&pauses, now + Duration::from_secs(7)), None);
        assert!(pauses.until("https://other.example", now).is_none());
    }

    #[test]
    fn without_a_word_from_the_provider_pauses_double_up_to_a_bound_and_a_reply_ends_them() {
        let (pauses, mut now) = (BackOffs::default(), Instant::now());
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            pauses.refused(HERE, None, now);
            assert_eq!(left(&pauses, now), Some(expected));
            now += Duration::from_secs(expected);
        }
        pauses.answered(HERE, now);
        pauses.refused(HERE, None, now);
        assert_eq!(left(&pauses, now), Some(1));
    }

    #[test]
    fn a_reply_to_a_call_from_before_the_pause_does_not_end_it() {
        let (pauses, now) = (BackOffs::default(), Instant::now());
        pauses.refused(HERE, Some(Duration::from_secs(9)), now);
        pauses.answered(HERE, now);
        assert_eq!(left(&pauses, now), Some(9));
    }

    #[test]
    fn a_pause_nobody_would_sit_through_holds_up_only_the_call_that_was_told() {
        let (pauses, now) = (BackOffs::default(), Instant::now());
        pauses.refused(HERE, Some(Duration::from_secs(1_000_000_000)), now);
        assert_eq!(left(&pauses, now), Some(1));
    }

    #[test]
    fn many_refusals_at_once_count_as_one() {
        let (pauses, now) = (BackOffs::default(), Instant::now());
        for _ in 0..20 {
            pauses.refused(HERE, None, now);
        }
        assert_eq!(left(&pauses, now), Some(1));
    }

    #[test]
    fn the_number_of_providers_is_bounded() {
        let pauses = BackOffs::default();
        for number in 0..2 * PROVIDERS {
            pauses.refused(&format!("https://{number}.example"), None, Instant::now());
        }
        assert_eq!(pauses.pauses().len(), PROVIDERS);
    }
}
