//! Which model answers: the profile a session names, the configured default, or the one chosen from the keys that clients brought.

mod back_off;
mod listed;
mod listeners;
mod neighbours;
mod renewed;
mod room;

use crate::api::{AskServers, KeyDesk};
use crate::auth::{AuthError, Choice, Keys, Redactor, Sources, choose};
use crate::config::Config;
use crate::config::profile::{KeySource, Prices, Wire};
use crate::context::assemble::ModelTerms;
use crate::provider::{Class, Http, ModelError};
use crate::session::effect::model::{Chosen, Models};
use async_trait::async_trait;
use back_off::BackOffs;
use neighbours::Neighbours;
use protocol::Usage;
use protocol::method::ModelListAnswer;
use renewed::Renewed;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The models of a configuration, with the keys that clients brought.
pub(crate) struct ConfiguredModels {
    config: Config,
    keys: Arc<Keys>,
    http: Http,
    back_offs: BackOffs,
    neighbours: Neighbours,
}

impl ConfiguredModels {
    /// `sources` gives the keys that `config` names; `redactor` learns every key. `http` is what `sources` connects with, too.
    pub(crate) fn new(config: Config, sources: Sources, http: Http, redactor: Redactor) -> Self {
        let keys = Arc::new(Keys::new(&config, sources, redactor));
        Self {
            config,
            keys,
            http,
            back_offs: BackOffs::default(),
            neighbours: Neighbours::default(),
        }
    }

    fn choice(&self, profile: Option<&str>) -> Result<Choice, AuthError> {
        let chosen = choose(&self.config, &self.keys, profile);
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
        self.config.models.is_empty()
            && choose(&self.config, &self.keys, None).is_ok_and(|choice| choice.profile.wire == Wire::Demo)
    }
}

fn refused(error: &AuthError) -> ModelError {
    let class = if error.passes() {
        Class::Connect
    } else {
        Class::Authentication
    };
    ModelError {
        hint: Some(error.hint()),
        ..ModelError::new(class, error.to_string())
    }
}

#[async_trait]
impl Models for ConfiguredModels {
    fn announce(&self, profile: Option<&str>) -> Option<String> {
        self.choice(profile).ok()?.notice
    }

    async fn choose(&self, profile: Option<&str>) -> Result<Chosen, ModelError> {
        let Choice { profile, .. } = self.choice(profile).map_err(|error| refused(&error))?;
        let with_key = Renewed::new(profile.clone(), Arc::clone(&self.keys), self.http.clone()).await?;
        let provider = self.back_offs.around(Arc::new(with_key));
        let known = room::known(&self.config.catalog, &profile);
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
        self.keys.lacks()
    }

    fn offer(&self, keys: BTreeMap<String, String>) -> Result<(), protocol::RpcError> {
        let keys = keys
            .into_iter()
            .map(|(name, value)| (name, SecretString::from(value)))
            .collect();
        self.keys.offer(keys).map_err(|error| {
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
        let lacks = matches!(&profile.key, KeySource::Env(name) if !self.keys.has(name));
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
