//! Which model answers: the profile a session names, the configured default, or the one chosen from the keys that clients brought.

mod back_off;
mod listed;
mod listeners;
mod neighbours;
mod room;
mod slots;

use crate::api::{AskServers, KeyDesk};
use crate::auth::{AuthError, Choice, Keys, Redactor, RunCommand, choose};
use crate::config::profile::{KeySource, Prices, Wire};
use crate::config::{Book, Config};
use crate::context::assemble::ModelTerms;
use crate::provider::{Class, Http, ModelError, connect};
use crate::session::effect::model::{Chosen, Models};
use async_trait::async_trait;
use back_off::BackOffs;
use neighbours::Neighbours;
use protocol::Usage;
use protocol::method::ModelListAnswer;
use secrecy::SecretString;
use slots::Slots;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The models of a configuration, with the keys that clients brought.
pub(crate) struct ConfiguredModels {
    book: Arc<Book>,
    /// What was made of the configuration as it was asked last.
    current: Mutex<Arc<Current>>,
    http: Http,
    back_offs: BackOffs,
    slots: Slots,
    neighbours: Neighbours,
}

/// A configuration, and the keys for it.
struct Current {
    config: Arc<Config>,
    keys: Keys,
}

impl ConfiguredModels {
    /// `run` runs the key commands of the configuration; `redactor` learns every key.
    pub(crate) fn new(book: Arc<Book>, run: Arc<dyn RunCommand>, redactor: Redactor) -> Self {
        let config = book.now();
        let keys = Keys::new(&config, run, redactor);
        Self {
            book,
            current: Mutex::new(Arc::new(Current { config, keys })),
            http: Http::default(),
            back_offs: BackOffs::default(),
            slots: Slots::default(),
            neighbours: Neighbours::default(),
        }
    }

    /// The configuration as it is now, with the keys that still mean something in it.
    fn current(&self) -> Arc<Current> {
        let config = self.book.now();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&current.config, &config) {
            let keys = current.keys.renewed(&config);
            *current = Arc::new(Current { config, keys });
        }
        Arc::clone(&current)
    }

    fn choice(&self, profile: Option<&str>) -> Result<Choice, AuthError> {
        let current = self.current();
        let chosen = choose(&current.config, &current.keys, profile);
        match self.neighbours.found().filter(|_| self.nothing_else()) {
            Some(local) if profile.is_none() => Ok(local),
            Some(local) if chosen.is_err() && profile == Some(&local.profile.name) => {
                Ok(Choice { notice: None, ..local })
            }
            _ => chosen,
        }
    }

    /// Whether nothing is configured and no key is there, so that the demo model would answer.
    fn nothing_else(&self) -> bool {
        let Current { config, keys } = &*self.current();
        config.models.is_empty() && choose(config, keys, None).is_ok_and(|choice| choice.profile.wire == Wire::Demo)
    }
}

fn refused(error: &AuthError) -> ModelError {
    ModelError {
        hint: Some(error.hint()),
        ..ModelError::new(Class::Authentication, error.to_string())
    }
}

#[async_trait]
impl Models for ConfiguredModels {
    fn announce(&self, profile: Option<&str>) -> Option<String> {
        self.choice(profile).ok()?.notice
    }

    async fn choose(&self, profile: Option<&str>) -> Result<Chosen, ModelError> {
        let Choice { profile, .. } = self.choice(profile).map_err(|error| refused(&error))?;
        let current = self.current();
        let key = current.keys.key(&profile).await.map_err(|error| refused(&error))?;
        let limit = current.config.limits.calls_per_provider;
        let counted = self.slots.around(connect(&profile, key, &self.http)?, limit);
        // Who waits out a pause takes nobody's place.
        let provider = self.back_offs.around(counted);
        let known = room::known(&current.config.catalog, &profile);
        let prices = known.prices;
        Ok(Chosen {
            provider,
            budget: known.budget,
            doubt: room::doubt(&profile, &known),
            terms: ModelTerms {
                model: profile.model,
                max_output_tokens: known.max_output_tokens,
                temperature: profile.temperature,
                top_p: profile.top_p,
                effort: profile.effort,
            },
            profile: profile.name,
            cost: Box::new(move |usage| prices.map(|prices| cost(prices, usage))),
        })
    }
}

/// US dollars of a call.
#[expect(clippy::cast_precision_loss, reason = "token counts lie far below 2^52")]
fn cost(prices: Prices, usage: Usage) -> f64 {
    const PER_MILLION: f64 = 1e-6;
    let fresh = usage.input.saturating_sub(usage.cached + usage.cache_write);
    let parts = [
        (fresh, prices.input),
        (usage.cached, prices.cached.unwrap_or(prices.input)),
        (usage.cache_write, prices.cache_write.unwrap_or(prices.input)),
        (usage.output, prices.output),
    ];
    parts
        .iter()
        .map(|(tokens, price)| *tokens as f64 * price * PER_MILLION)
        .sum()
}

#[async_trait]
impl KeyDesk for ConfiguredModels {
    fn lacks(&self) -> Vec<String> {
        self.current().keys.lacks()
    }

    fn offer(&self, keys: BTreeMap<String, String>) -> Result<(), protocol::RpcError> {
        let keys = keys
            .into_iter()
            .map(|(name, value)| (name, SecretString::from(value)))
            .collect();
        self.current().keys.offer(keys).map_err(|error| {
            protocol::RpcError::new(protocol::ErrorKind::InvalidParams, error.to_string()).hint(error.hint())
        })
    }

    fn knows(&self, profile: &str) -> bool {
        self.choice(Some(profile)).is_ok()
    }

    fn notice(&self) -> Option<String> {
        self.announce(None)
    }

    async fn look_around(&self) {
        if self.nothing_else() {
            self.neighbours.look(&self.http).await;
        }
    }

    fn warm(&self, profile: Option<&str>) {
        let Ok(Choice { profile, .. }) = self.choice(profile) else {
            return;
        };
        let lacks = matches!(&profile.key, KeySource::Env(name) if !self.current().keys.has(name));
        if profile.wire != Wire::Demo && !lacks {
            let http = self.http.clone();
            // Ends by itself within the connect timeout, and nothing waits for it.
            tokio::spawn(async move { http.warm(&profile).await });
        }
    }

    async fn list(&self, ask: AskServers) -> ModelListAnswer {
        self.look_around().await;
        self.listed(ask).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_paid_once_and_at_its_own_price() {
        let usage = Usage {
            input: 1_000_000,
            output: 100_000,
            cached: 600_000,
            cache_write: 300_000,
            reasoning: 50_000,
        };
        let prices = Prices {
            input: 2.0,
            output: 10.0,
            cached: Some(0.2),
            cache_write: Some(2.5),
        };
        assert!((cost(prices, usage) - (0.2 + 0.12 + 0.75 + 1.0)).abs() < 1e-9);
        let plain = Prices {
            input: 2.0,
            output: 10.0,
            cached: None,
            cache_write: None,
        };
        assert!(
            (cost(plain, usage) - 3.0).abs() < 1e-9,
            "a cache without a price of its own is no present"
        );
    }
}
