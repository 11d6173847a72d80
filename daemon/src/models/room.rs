//! How much context a model takes: the profile's own words, else the catalog's, else a careful guess that says so.

use crate::config::catalog::Catalog;
use crate::config::profile::{DEFAULT_MAX_OUTPUT_TOKENS, Prices, Profile};

/// The context window of a model nobody knows, in tokens: what nearly every model of today has at least.
const UNKNOWN_WINDOW: u64 = 32_768;

/// What of the window stays for the context however long a reply may be: one part in this many.
const LEAST_PART: u64 = 4;

/// A profile with what the catalog adds to it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The context window, in tokens.
    pub(crate) window: u64,
    /// Whether somebody said so.
    pub(crate) sure: bool,
    /// Tokens of context to stay below.
    pub(crate) budget: u64,
    pub(crate) max_output_tokens: u32,
    pub(crate) prices: Option<Prices>,
}

/// What is known about the model of `profile`.
pub(crate) fn known(catalog: &Catalog, profile: &Profile) -> Known {
    let rule = catalog.rule(&profile.model);
    let said = profile
        .context_tokens
        .or_else(|| rule.and_then(|rule| rule.context_tokens));
    let window = said.unwrap_or(UNKNOWN_WINDOW);
    let longest = rule.and_then(|rule| rule.max_output_tokens).unwrap_or(u32::MAX);
    let max_output_tokens = match profile.max_output_tokens {
        DEFAULT_MAX_OUTPUT_TOKENS => DEFAULT_MAX_OUTPUT_TOKENS.min(longest),
        chosen => chosen,
    };
    let left = window
        .saturating_sub(u64::from(max_output_tokens))
        .max(window / LEAST_PART);
    let charged = rule.filter(|_| !on_this_machine(&profile.base_url));
    Known {
        window,
        sure: said.is_some(),
        budget: profile.context_budget_tokens.unwrap_or(left),
        max_output_tokens,
        prices: profile.prices.or_else(|| charged.and_then(|rule| rule.prices)),
    }
}

/// Where a profile stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    InConfig,
    /// It was made from the catalog, or for a server that was found.
    Nowhere,
}

/// What a person is told about a window nobody knows.
pub(crate) fn doubt(profile: &Profile, written: Written, known: &Known) -> Option<String> {
    let place = match written {
        Written::Nowhere => format!("a [[rule]] for {} in models.toml", profile.model),
        Written::InConfig => format!("[models.{}]", profile.name),
    };
    let text = format!(
        "the context window of {} is not known: counting with {UNKNOWN_WINDOW} tokens. Set context_tokens in {place}",
        profile.model
    );
    (!known.sure).then_some(text)
}

/// Whether a profile's server runs here, where nobody charges for tokens.
fn on_this_machine(base_url: &str) -> bool {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    ["localhost", "127.", "[::1]"].iter().any(|own| host.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(model: &str, more: &str) -> anyhow::Result<Profile> {
        Ok(toml::from_str(&format!(
            "wire = 'openai-chat'\nauth = 'none'\nmodel = '{model}'\n{more}"
        ))?)
    }

    #[test]
    fn the_profile_is_believed_first_then_the_catalog() -> anyhow::Result<()> {
        let catalog = Catalog::shipped();
        let plain = known(&catalog, &profile("gpt-4o-2024-11-20", "")?);
        assert_eq!(
            (plain.window, plain.sure, plain.budget),
            (128_000, true, 128_000 - 16_384)
        );
        assert_eq!(plain.prices.map(|prices| prices.input), Some(2.5));
        let own = "context_tokens = 1000\ncontext_budget_tokens = 900\nmax_output_tokens = 50\nprices = { input = 9 }";
        let own = known(&catalog, &profile("gpt-4o", own)?);
        assert_eq!((own.window, own.budget, own.max_output_tokens), (1_000, 900, 50));
        assert_eq!(own.prices.map(|prices| prices.input), Some(9.0));
        Ok(())
    }

    #[test]
    fn a_reply_is_no_longer_than_the_model_can_answer_unless_the_profile_says_so() -> anyhow::Result<()> {
        let catalog = Catalog::shipped();
        assert_eq!(known(&catalog, &profile("deepseek-chat", "")?).max_output_tokens, 8_192);
        assert_eq!(
            known(&catalog, &profile("deepseek-chat", "max_output_tokens = 9000")?).max_output_tokens,
            9_000
        );
        Ok(())
    }

    #[test]
    fn an_unknown_model_is_guessed_and_the_notice_names_the_key_to_set() -> anyhow::Result<()> {
        let mut unknown = profile("nobody-knows", "")?;
        unknown.name = "mine".to_owned();
        let guessed = known(&Catalog::shipped(), &unknown);
        assert_eq!((guessed.window, guessed.sure, guessed.budget), (32_768, false, 16_384));
        let told = doubt(&unknown, Written::InConfig, &guessed).unwrap_or_default();
        assert!(
            told.contains("32768") && told.contains("context_tokens") && told.contains("[models.mine]"),
            "{told}"
        );
        let told = doubt(&unknown, Written::Nowhere, &guessed).unwrap_or_default();
        assert!(told.contains("[[rule]] for nobody-knows in models.toml"), "{told}");
        let sure = known(&Catalog::shipped(), &profile("gpt-4o", "")?);
        assert_eq!(doubt(&unknown, Written::InConfig, &sure), None);
        Ok(())
    }

    #[test]
    fn a_server_on_this_machine_costs_nothing_and_a_small_window_still_has_room() -> anyhow::Result<()> {
        for host in [
            "http://localhost:1234/v1",
            "http://127.0.0.1:8080/v1",
            "http://[::1]:8000/v1",
        ] {
            assert_eq!(
                known(
                    &Catalog::shipped(),
                    &profile("gpt-4o", &format!("base_url = '{host}'"))?
                )
                .prices,
                None,
                "{host}"
            );
        }
        assert_eq!(
            known(&Catalog::shipped(), &profile("m", "context_tokens = 4000")?).budget,
            1_000
        );
        Ok(())
    }
}
