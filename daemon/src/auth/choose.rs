//! Which model answers: the one that is named, else the default, else, with nothing configured, what a client's keys
//! allow, else the demo model. A model nobody named says where the content goes.

use std::collections::BTreeMap;

use secrecy::ExposeSecret;

use super::error::AuthError;
use super::{ANTHROPIC_KEY, BASE_URL, BASE_URL_KEY, Keys, OPENAI_KEY};
use crate::config::Config;
use crate::config::catalog::Provider;
use crate::config::profile::{DEFAULT_MAX_OUTPUT_TOKENS, KeySource, Profile, Timeouts, Wire};

/// The name of the built-in demo model.
const DEMO: &str = "demo";

/// A model to answer with.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Its profile, configured or built in.
    pub profile: Profile,
    /// For a model nobody named: what it is and where the content goes, one line.
    pub notice: Option<String>,
}

/// The model of a session: the profile `named`, else the chosen one.
///
/// # Errors
/// No such profile, several without a default, or an address without a model.
pub fn choose(config: &Config, keys: &Keys, named: Option<&str>) -> Result<Choice, AuthError> {
    match named {
        Some(name) => by_name(config, keys, name).map(|profile| Choice { profile, notice: None }),
        None if config.models.is_empty() => automatic(config, keys),
        None => default(config).map(|profile| Choice { profile, notice: None }),
    }
}

fn by_name(config: &Config, keys: &Keys, name: &str) -> Result<Profile, AuthError> {
    if let Some(profile) = config.models.get(name) {
        return Ok(profile.clone());
    }
    if name == DEMO {
        return Ok(demo());
    }
    if config.models.is_empty() {
        if let Some(profile) = of_environment(keys, name) {
            return Ok(profile);
        }
        if let Some(provider) = config.catalog.providers().iter().find(|provider| provider.name == name) {
            return Ok(of_provider(provider, name, &provider.model));
        }
    }
    if let Some((provider, model)) = config.catalog.named(name) {
        return of_catalog(config, provider, name, model);
    }
    let known = config.models.keys().cloned().collect();
    Err(AuthError::UnknownProfile {
        name: name.to_owned(),
        known,
    })
}

fn default(config: &Config) -> Result<Profile, AuthError> {
    let known = || config.models.keys().cloned().collect();
    let only = || config.models.values().next().filter(|_| config.models.len() == 1);
    let named = config.default_model.as_ref().and_then(|name| config.models.get(name));
    named
        .or_else(only)
        .cloned()
        .ok_or_else(|| AuthError::NoDefault { known: known() })
}

/// Nothing is configured and nothing named.
fn automatic(config: &Config, keys: &Keys) -> Result<Choice, AuthError> {
    if keys.has(BASE_URL) {
        return Err(AuthError::ModelUnnamed);
    }
    for provider in config.catalog.providers() {
        let variable = &provider.api_key_env;
        if keys.has(variable) {
            let notice = format!("using {} (key from {variable})", provider.name);
            return Ok(Choice {
                profile: of_provider(provider, &provider.name, &provider.model),
                notice: Some(notice),
            });
        }
    }
    let notice = format!(
        "using the built-in demo model: it cannot reason. Set {ANTHROPIC_KEY} or {OPENAI_KEY}, or add a profile to {}",
        config.path.display()
    );
    Ok(Choice {
        profile: demo(),
        notice: Some(notice),
    })
}

/// `model` of a provider of the catalog, with the provider's own variable for the key.
fn of_provider(provider: &Provider, name: &str, model: &str) -> Profile {
    let key = KeySource::Env(provider.api_key_env.clone());
    Profile {
        key,
        ..profile(name, provider.wire, &provider.base_url, model)
    }
}

/// `PROVIDER/MODEL`: reached as a configured profile of that provider is, with its key, else with the provider's own variable, which
/// clients are asked for only where nothing is configured.
fn of_catalog(config: &Config, provider: &Provider, name: &str, model: &str) -> Result<Profile, AuthError> {
    if config.models.is_empty() {
        return Ok(of_provider(provider, name, model));
    }
    let same = |profile: &&Profile| profile.base_url.trim_end_matches('/') == provider.base_url;
    let like = config
        .models
        .values()
        .find(same)
        .ok_or_else(|| AuthError::NoProfileOf {
            name: name.to_owned(),
            provider: provider.name.clone(),
            variable: provider.api_key_env.clone(),
        })?;
    Ok(Profile {
        name: name.to_owned(),
        model: model.to_owned(),
        context_tokens: None,
        context_budget_tokens: None,
        prices: None,
        ..like.clone()
    })
}

/// The provider that a client's environment names. Anthropic's own address speaks its wire, all others the common one.
fn of_environment(keys: &Keys, model: &str) -> Option<Profile> {
    let base_url = keys.value(BASE_URL)?;
    let base_url = base_url.expose_secret();
    let wire = match base_url.starts_with("https://api.anthropic.com") {
        true => Wire::AnthropicMessages,
        false => Wire::OpenaiChat,
    };
    Some(Profile {
        key: KeySource::Env(BASE_URL_KEY.to_owned()),
        ..profile(model, wire, base_url, model)
    })
}

fn demo() -> Profile {
    profile(DEMO, Wire::Demo, "", DEMO)
}

fn profile(name: &str, wire: Wire, base_url: &str, model: &str) -> Profile {
    Profile {
        name: name.to_owned(),
        wire,
        base_url: base_url.to_owned(),
        model: model.to_owned(),
        key: KeySource::None,
        context_tokens: None,
        context_budget_tokens: None,
        max_output_tokens: DEFAULT_MAX_OUTPUT_TOKENS,
        temperature: None,
        top_p: None,
        effort: None,
        headers: BTreeMap::new(),
        prices: None,
        allow_http: false,
        timeouts: Timeouts::default(),
    }
}
