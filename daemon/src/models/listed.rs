//! The list of models: what is configured, else what a key or this machine would give, each with what is known about it.

use super::room::known;
use super::{ConfiguredModels, Current};
use crate::api::AskServers;
use crate::auth::choose;
use crate::config::profile::{KeySource, Profile, Wire};
use crate::provider::listing;
use protocol::method::{LocalDecision, ModelInfo, ModelListAnswer, PriceList};
use std::time::Duration;

/// How long servers get to say which models they have, all of them together.
const LIMIT: Duration = Duration::from_secs(5);

impl ConfiguredModels {
    pub(super) async fn listed(&self, ask: AskServers) -> ModelListAnswer {
        let default = self.choice(None).ok();
        let default_name = default.as_ref().map(|choice| choice.profile.name.clone());
        let profiles = self.profiles();
        let mut models: Vec<ModelInfo> = profiles
            .iter()
            .map(|profile| self.info(profile, default_name.as_deref() == Some(&profile.name)))
            .collect();
        let current = self.current();
        for (info, profile) in models.iter_mut().zip(&profiles) {
            info.needs_login = current.keys.needs_login(profile).await;
        }
        if ask == AskServers::Yes {
            let asked = profiles.iter().map(|profile| self.available(profile));
            for (info, answer) in models.iter_mut().zip(futures::future::join_all(asked).await) {
                if let Some(answer) = answer {
                    listing::tell(info, answer);
                }
            }
        }
        let local_server = self.neighbour();
        ModelListAnswer {
            models,
            notice: default.and_then(|choice| choice.notice),
            local_decision: local_server.as_ref().and_then(|server| self.confirmed.of(server)),
            local_server,
        }
    }

    /// The configured profiles; without any, the providers of the catalog, what was found on this machine, and the demo model.
    fn profiles(&self) -> Vec<Profile> {
        let Current { config, keys } = &*self.current();
        if !config.models.is_empty() {
            return config.models.values().cloned().collect();
        }
        let providers = config.catalog.providers().iter();
        let names = providers.map(|provider| provider.name.as_str()).chain(["demo"]);
        let built_in = names.filter_map(|name| choose(config, keys, Some(name)).ok());
        // One that nobody let answer is no model to be named.
        let found = self
            .neighbours
            .found()
            .filter(|found| self.confirmed.of(&found.server) == Some(LocalDecision::Use));
        found
            .map(|found| found.choice)
            .into_iter()
            .chain(built_in)
            .map(|choice| choice.profile)
            .collect()
    }

    fn info(&self, profile: &Profile, default: bool) -> ModelInfo {
        let Current { config, keys } = &*self.current();
        let known = known(&config.catalog, profile);
        let lacks = match &profile.key {
            KeySource::Env(name) if !keys.has(name) => Some(name.clone()),
            _ => None,
        };
        ModelInfo {
            name: profile.name.clone(),
            wire: profile.wire.as_str().to_owned(),
            model: profile.model.clone(),
            address: address(profile),
            default,
            configured: config.models.contains_key(&profile.name),
            lacks,
            needs_login: false,
            context_tokens: known.window,
            context_known: known.sure,
            context_budget_tokens: known.budget,
            max_output_tokens: known.max_output_tokens,
            prices: known.prices.map(|prices| PriceList {
                input: prices.input,
                output: prices.output,
                cached: prices.cached.unwrap_or(prices.input),
                cache_write: prices.cache_write.unwrap_or(prices.input),
            }),
            available: None,
            problem: None,
        }
    }

    /// What the profile's server says; `None` where it is not asked.
    async fn available(&self, profile: &Profile) -> Option<Result<Vec<listing::Listed>, crate::provider::ModelError>> {
        let current = self.current();
        let lacks = matches!(&profile.key, KeySource::Env(name) if !current.keys.has(name));
        if profile.wire == Wire::Demo || lacks || current.keys.needs_login(profile).await {
            return None;
        }
        let key = match tokio::time::timeout(LIMIT, current.keys.key(profile)).await {
            Ok(key) => key.map_err(|error| super::refused(&error)),
            Err(_) => return None,
        };
        Some(match key {
            Ok(key) => listing::available(profile, key, &self.http, LIMIT).await,
            Err(error) => Err(error),
        })
    }
}

/// Scheme, host and port of the profile's address: user and path may hold secrets.
fn address(profile: &Profile) -> String {
    let Some((scheme, rest)) = profile.base_url.split_once("://") else {
        return String::new();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_shows_neither_user_nor_path() -> anyhow::Result<()> {
        let shown = |base_url: &str| {
            let profile = toml::from_str(&format!(
                "wire = 'openai-chat'\nauth = 'none'\nmodel = 'm'\nbase_url = '{base_url}'"
            ));
            profile.map(|profile| address(&profile))
        };
        assert_eq!(
            shown("https://me:secret@box.example:8443/v1/secret?key=secret")?,
            "https://box.example:8443"
        );
        assert_eq!(shown("http://127.0.0.1:8080")?, "http://127.0.0.1:8080");
        Ok(())
    }
}
