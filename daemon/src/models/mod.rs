//! Which model answers: the profile a session names, the configured default, or the one chosen from the keys that clients brought.

mod back_off;
mod confirmed;
mod listed;
mod listeners;
mod neighbours;
mod renewed;
mod room;
mod slots;

use crate::api::{AskServers, KeyDesk};
use crate::auth::{AuthError, Choice, Keys, Redactor, Sources, choose};
use crate::config::profile::{KeySource, Prices, Wire};
use crate::config::{Book, Config};
use crate::context::assemble::ModelTerms;
use crate::provider::{Class, Http, ModelError};
use crate::session::effect::model::{Chosen, Models};
use async_trait::async_trait;
use back_off::BackOffs;
use confirmed::Confirmed;
use neighbours::{Found, Neighbours};
use protocol::method::{LocalDecision, LocalServer, ModelConfirmParams, ModelListAnswer};
use protocol::{ErrorKind, Mode, RpcError, Usage};
use renewed::Renewed;
use room::Written;
use secrecy::SecretString;
use slots::Slots;
use std::collections::BTreeMap;
use std::path::Path;
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
    confirmed: Confirmed,
}

/// A configuration, and the keys for it.
struct Current {
    config: Arc<Config>,
    keys: Arc<Keys>,
}

impl ConfiguredModels {
    /// `sources` gives the keys that the configuration names; `redactor` learns every key; `state_dir` is where people's words on servers
    /// are kept. `http` is what `sources` connects with, too.
    pub(crate) fn new(book: Arc<Book>, sources: Sources, http: Http, redactor: Redactor, state_dir: &Path) -> Self {
        let config = book.now();
        let keys = Arc::new(Keys::new(&config, sources, redactor));
        Self {
            book,
            current: Mutex::new(Arc::new(Current { config, keys })),
            http,
            back_offs: BackOffs::default(),
            slots: Slots::default(),
            neighbours: Neighbours::default(),
            confirmed: Confirmed::open(state_dir),
        }
    }

    /// The configuration as it is now, with the keys that still mean something in it.
    fn current(&self) -> Arc<Current> {
        let config = self.book.now();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&current.config, &config) {
            let keys = Arc::new(current.keys.renewed(&config));
            *current = Arc::new(Current { config, keys });
        }
        Arc::clone(&current)
    }

    fn choice(&self, profile: Option<&str>) -> Result<Choice, AuthError> {
        let current = self.current();
        let chosen = choose(&current.config, &current.keys, profile);
        let Some(Found { choice: local, server }) = self.neighbours.found().filter(|_| self.nothing_else()) else {
            return chosen;
        };
        let allowed = self.confirmed.of(&server) == Some(LocalDecision::Use);
        match profile {
            None if allowed => Ok(local),
            Some(name) if chosen.is_err() && name == server.name && allowed => Ok(Choice { notice: None, ..local }),
            Some(name) if chosen.is_err() && name == server.name => Err(AuthError::Unconfirmed {
                name: server.name,
                address: server.address,
            }),
            _ => chosen,
        }
    }

    /// The address of the server that was found on this machine, if it is what `profile` means.
    fn found_at(&self, profile: Option<&str>) -> Option<LocalServer> {
        let found = self.neighbours.found()?;
        let choice = self.choice(profile).ok()?;
        (choice.profile.base_url == found.choice.profile.base_url && self.nothing_else()).then_some(found.server)
    }

    /// The server of this machine that answers instead of the demo model if a person says so.
    fn neighbour(&self) -> Option<LocalServer> {
        let found = self.neighbours.found().filter(|_| self.nothing_else())?;
        Some(found.server)
    }

    /// Whether nothing is configured and no key is there, so that the demo model would answer.
    fn nothing_else(&self) -> bool {
        let Current { config, keys } = &*self.current();
        config.models.is_empty() && choose(config, keys, None).is_ok_and(|choice| choice.profile.wire == Wire::Demo)
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

    async fn choose(&self, profile: Option<&str>, mode: Mode) -> Result<Chosen, ModelError> {
        if let Some(server) = self.found_at(profile).filter(|_| mode == Mode::All) {
            let hint = Some(NOT_CONFIGURED_HINT.to_owned());
            return Err(ModelError {
                hint,
                ..ModelError::new(Class::Refused, not_configured(&server))
            });
        }
        let Choice { profile, .. } = self.choice(profile).map_err(|error| refused(&error))?;
        let current = self.current();
        let with_key = Renewed::new(profile.clone(), Arc::clone(&current.keys), self.http.clone()).await?;
        let counted = self
            .slots
            .around(Arc::new(with_key), current.config.limits.calls_per_provider);
        // Who waits out a pause takes nobody's place.
        let provider = self.back_offs.around(counted);
        let known = room::known(&current.config.catalog, &profile);
        let prices = known.prices;
        let written = match current.config.models.contains_key(&profile.name) {
            true => Written::InConfig,
            false => Written::Nowhere,
        };
        Ok(Chosen {
            provider,
            budget: known.budget,
            doubt: room::doubt(&profile, written, &known),
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

/// Why a server that was found does not go with a mode in which nobody is asked.
fn not_configured(server: &LocalServer) -> String {
    format!(
        "mode all is not for {} at {}: it was found on this machine, nobody configured it",
        server.name, server.address
    )
}

const NOT_CONFIGURED_HINT: &str = "add it to the config file as a profile (agentctl config edit), or use another mode";

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

    fn takes_base_url(&self) -> bool {
        self.current().keys.takes_base_url()
    }

    fn offer(&self, keys: BTreeMap<String, String>) -> Result<(), RpcError> {
        let keys = keys
            .into_iter()
            .map(|(name, value)| (name, SecretString::from(value)))
            .collect();
        self.current()
            .keys
            .offer(keys)
            .map_err(|error| RpcError::new(ErrorKind::InvalidParams, error.to_string()).hint(error.hint()))
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

    fn undecided(&self) -> Option<LocalServer> {
        self.neighbour().filter(|server| self.confirmed.of(server).is_none())
    }

    fn confirm(&self, params: &ModelConfirmParams) -> Result<(), RpcError> {
        let is_shown = |server: &LocalServer| server.address == params.address && server.uid == params.uid;
        let server = self.neighbour().filter(is_shown).ok_or_else(|| {
            let message = format!("no model server of that owner is at {} now", params.address);
            RpcError::new(ErrorKind::UnknownModel, message).hint("agentctl model list shows what is there")
        })?;
        self.confirmed
            .record(&server, params.decision)
            .map_err(|error| RpcError::new(ErrorKind::StorageFailed, format!("the answer cannot be kept: {error}")))
    }

    fn unfit(&self, profile: Option<&str>, mode: Mode) -> Option<RpcError> {
        let server = self.found_at(profile).filter(|_| mode == Mode::All)?;
        Some(RpcError::new(ErrorKind::NotAuthorized, not_configured(&server)).hint(NOT_CONFIGURED_HINT))
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
