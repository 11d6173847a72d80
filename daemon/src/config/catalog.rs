//! The catalog: what is known about models and providers. The shipped `models.toml`, with the user's own file of that name before it.
//!
//! Rules are asked in file order and the first that fits counts, alone: what a rule leaves open is unknown, not taken from a later one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::error::ConfigError;
use super::load::read;
use super::profile::{Prices, Wire};

/// The catalog that comes with the daemon.
const SHIPPED: &str = include_str!("../../models.toml");

/// Name of the user's file, beside the configuration.
const FILE: &str = "models.toml";

/// What is known about models and providers. Clones share it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog(Arc<Written>);

/// A file as written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    provider: Vec<Provider>,
    rule: Vec<Rule>,
}

/// A provider that needs nothing but a key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// What `PROVIDER/MODEL` begins with.
    pub name: String,
    pub wire: Wire,
    pub base_url: String,
    /// The variable of a client's environment that has the key.
    pub api_key_env: String,
    /// The model that answers when none is named.
    pub model: String,
}

/// What is known about the models whose name fits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "WrittenRule")]
pub struct Rule {
    fits: Fits,
    /// Size of the context window in tokens.
    pub context_tokens: Option<u64>,
    /// Most tokens the provider lets one reply have.
    pub max_output_tokens: Option<u32>,
    pub prices: Option<Prices>,
}

/// How a rule is compared with a model's name, in lower case: one of its own names has to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fits {
    Exact(Vec<String>),
    Prefix(Vec<String>),
    Contains(Vec<String>),
}

/// A name, or a list of them.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a name or a list of names")]
enum Names {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    exact: Option<Names>,
    prefix: Option<Names>,
    contains: Option<Names>,
    context_tokens: Option<u64>,
    max_output_tokens: Option<u32>,
    prices: Option<Prices>,
}

impl TryFrom<WrittenRule> for Rule {
    type Error = &'static str;

    fn try_from(written: WrittenRule) -> Result<Self, Self::Error> {
        let fits = match (written.exact, written.prefix, written.contains) {
            (Some(names), None, None) => Fits::Exact(names.lower()),
            (None, Some(names), None) => Fits::Prefix(names.lower()),
            (None, None, Some(names)) => Fits::Contains(names.lower()),
            _ => return Err("a rule has exactly one of `exact`, `prefix` and `contains`"),
        };
        if written.context_tokens == Some(0) || written.max_output_tokens == Some(0) {
            return Err("a rule's tokens must be at least 1");
        }
        Ok(Self {
            fits,
            context_tokens: written.context_tokens,
            max_output_tokens: written.max_output_tokens,
            prices: written.prices,
        })
    }
}

impl Names {
    fn lower(self) -> Vec<String> {
        let names = match self {
            Self::One(name) => vec![name],
            Self::Several(names) => names,
        };
        names.into_iter().map(|name| name.to_ascii_lowercase()).collect()
    }
}

impl Fits {
    fn takes(&self, name: &str) -> bool {
        match self {
            Self::Exact(texts) => texts.iter().any(|text| name == text),
            Self::Prefix(texts) => texts.iter().any(|text| name.starts_with(text)),
            Self::Contains(texts) => texts.iter().any(|text| name.contains(text)),
        }
    }
}

impl Catalog {
    /// The shipped catalog alone.
    pub fn shipped() -> Self {
        // A test reads the shipped file, so it is never refused here.
        Self(Arc::new(toml::from_str(SHIPPED).unwrap_or_default()))
    }

    /// The shipped catalog behind what the file beside `config` says, if there is one.
    ///
    /// # Errors
    /// A file that cannot be read, is no TOML, or says something the catalog does not know.
    pub fn beside(config: &Path) -> Result<Self, ConfigError> {
        let path = file_beside(config);
        let shipped = Self::shipped();
        let Some((text, _)) = read(&path)? else {
            return Ok(shipped);
        };
        let own: Written = toml::from_str(&text).map_err(|error| ConfigError::from_toml(&path, &text, &error))?;
        Ok(shipped.behind(own))
    }

    fn behind(&self, own: Written) -> Self {
        let Written {
            provider: mut added,
            mut rule,
        } = own;
        // A provider that replaces another takes its place, and one that is new comes last: neither changes whom a key chooses first.
        let in_place = |shipped: &Provider| match added.iter().position(|own| own.name == shipped.name) {
            Some(at) => added.remove(at),
            None => shipped.clone(),
        };
        let mut provider: Vec<Provider> = self.0.provider.iter().map(in_place).collect();
        provider.append(&mut added);
        rule.extend(self.0.rule.iter().cloned());
        Self(Arc::new(Written { provider, rule }))
    }

    /// The first rule that fits the provider's name of a model.
    pub fn rule(&self, model: &str) -> Option<&Rule> {
        let name = model.to_ascii_lowercase();
        self.0.rule.iter().find(|rule| rule.fits.takes(&name))
    }

    /// All providers, the preferred one first.
    pub fn providers(&self) -> &[Provider] {
        &self.0.provider
    }

    /// The provider and the model that `PROVIDER/MODEL` names.
    pub fn named<'a>(&self, text: &'a str) -> Option<(&Provider, &'a str)> {
        let (provider, model) = text.split_once('/')?;
        let provider = self.0.provider.iter().find(|known| known.name == provider)?;
        (!model.is_empty()).then_some((provider, model))
    }
}

/// The user's own catalog, whether or not it is there.
pub(super) fn file_beside(config: &Path) -> PathBuf {
    config.with_file_name(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> anyhow::Result<Catalog> {
        Ok(Catalog::shipped().behind(toml::from_str(text)?))
    }

    #[test]
    fn the_shipped_catalog_is_valid_and_knows_the_model_of_each_provider() -> anyhow::Result<()> {
        let catalog = Catalog(Arc::new(toml::from_str::<Written>(SHIPPED)?));
        let names: Vec<&str> = catalog
            .providers()
            .iter()
            .map(|provider| provider.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "anthropic",
                "openai",
                "openrouter",
                "deepseek",
                "groq",
                "mistral",
                "gemini"
            ]
        );
        for provider in catalog.providers() {
            let rule = catalog.rule(&provider.model);
            assert!(
                rule.is_some_and(|rule| rule.context_tokens.is_some() && rule.prices.is_some()),
                "{}",
                provider.name
            );
        }
        Ok(())
    }

    #[test]
    fn no_shipped_rule_is_hidden_by_an_earlier_one() {
        let catalog = Catalog::shipped();
        for rule in &catalog.0.rule {
            let (Fits::Exact(names) | Fits::Prefix(names) | Fits::Contains(names)) = &rule.fits;
            for name in names {
                assert_eq!(catalog.rule(name), Some(rule), "{name}");
            }
        }
    }

    #[test]
    fn the_first_rule_that_fits_counts_and_the_user_s_come_first() -> anyhow::Result<()> {
        let catalog = written(
            "[[rule]]\nprefix = ['our-', 'Mine-']\ncontext_tokens = 1\n[[rule]]\ncontains = 'ne-x'\ncontext_tokens = 2\n\
             [[rule]]\nexact = 'GPT-5'\ncontext_tokens = 3\n",
        )?;
        let window = |model: &str| catalog.rule(model).and_then(|rule| rule.context_tokens);
        assert_eq!(
            (window("mine-x"), window("one-x"), window("gpt-5")),
            (Some(1), Some(2), Some(3))
        );
        assert_eq!(
            catalog.rule("GPT-5").and_then(|rule| rule.prices),
            None,
            "a rule counts alone"
        );
        assert_eq!((window("gpt-5-mini"), window("nobody knows")), (Some(272_000), None));
        Ok(())
    }

    #[test]
    fn a_provider_of_the_same_name_replaces_the_shipped_one() -> anyhow::Result<()> {
        let catalog = written(
            "[[provider]]\nname = 'groq'\nwire = 'openai-chat'\nbase_url = 'https://g.example'\napi_key_env = 'G'\nmodel = 'm'\n",
        )?;
        assert_eq!(
            catalog
                .providers()
                .iter()
                .filter(|provider| provider.name == "groq")
                .count(),
            1
        );
        let (groq, model) = catalog
            .named("groq/a/b")
            .ok_or_else(|| anyhow::anyhow!("groq/a/b names nothing"))?;
        assert_eq!((groq.base_url.as_str(), model), ("https://g.example", "a/b"));
        assert!(
            catalog.named("groq/").is_none() && catalog.named("nobody/m").is_none() && catalog.named("groq").is_none()
        );
        Ok(())
    }

    #[test]
    fn a_mistake_in_the_user_s_file_names_file_and_line() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let config = dir.path().join("config.toml");
        assert_eq!(Catalog::beside(&config)?, Catalog::shipped());
        std::fs::write(dir.path().join("models.toml"), "[[rule]]\nexact = 'a'\nprefix = 'b'\n")?;
        let said = Catalog::beside(&config).map(drop).map_err(|error| error.to_string());
        let said = said.err().unwrap_or_default();
        assert!(
            said.contains("models.toml:1") && said.contains("exactly one of"),
            "{said}"
        );
        Ok(())
    }
}
