//! Tokens in memory and as they are kept. In the daemon's life their end is measured by the monotonic clock. Across lives the wall clock
//! is all there is, so it only decides whether to renew early: whether a token still holds is the provider's word.

use std::fmt;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use oauth2::TokenResponse;
use oauth2::basic::BasicTokenResponse;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::config::login::Login;

/// Tokens are renewed this long before their end, so that a call that begins now does not meet it.
const MARGIN: Duration = Duration::from_secs(60);

/// The longest life that is believed; more would only overflow clocks.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What a provider gave for a login.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    /// None once the provider has refused it.
    access: Option<SecretString>,
    refresh: Option<SecretString>,
    obtained_at: Timestamp,
    /// None where the provider did not say.
    life: Option<Life>,
}

#[derive(Debug, Clone, Copy)]
struct Life {
    whole: Duration,
    end: Instant,
}

/// What tokens are good for now.
pub(super) enum Standing {
    /// To be used as it is.
    Good(SecretString),
    /// To be renewed first; the access token may still hold.
    Due(Option<SecretString>, SecretString),
    /// Of no use any more.
    Over,
}

impl Tokens {
    /// What an answer of the token endpoint holds; without a new refresh token the one of `before` stays.
    pub(super) fn of(answer: &BasicTokenResponse, before: Option<&Self>) -> Self {
        let refresh = answer.refresh_token().map(|token| token.secret().as_str().into());
        let now = Instant::now();
        let life = |whole: Duration| {
            let whole = whole.min(LONGEST);
            now.checked_add(whole).map(|end| Life { whole, end })
        };
        Self {
            access: Some(answer.access_token().secret().as_str().into()),
            refresh: refresh.or_else(|| before?.refresh.clone()),
            obtained_at: Timestamp::now(),
            life: answer.expires_in().and_then(life),
        }
    }

    /// What they are good for at `now`.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        match (&self.access, &self.refresh) {
            (None, None) => Standing::Over,
            // Without a way to renew it, only the provider can say that it does not hold any more.
            (Some(access), None) => Standing::Good(access.clone()),
            (Some(access), Some(_)) if !self.is_due(now) => Standing::Good(access.clone()),
            (access, Some(refresh)) => Standing::Due(access.clone(), refresh.clone()),
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let margin = |life: &Life| MARGIN.min(life.whole / 2);
        self.life
            .is_some_and(|life| life.end.saturating_duration_since(now) <= margin(&life))
    }

    /// Forgets the access token, if it is still the one the provider refused.
    pub(super) fn reject(&mut self, refused: &SecretString) {
        let same = |access: &SecretString| access.expose_secret() == refused.expose_secret();
        if self.access.as_ref().is_some_and(same) {
            self.access = None;
        }
    }

    /// The access token, if the provider has not refused it.
    pub(super) fn access(&self) -> Option<SecretString> {
        self.access.clone()
    }

    /// Both, for who has to know them as secrets or to end them.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.access.iter().chain(&self.refresh).map(ExposeSecret::expose_secret)
    }

    /// Whether there is a way to renew them.
    pub(super) fn renews(&self) -> bool {
        self.refresh.is_some()
    }

    /// How long the access token has, if the provider said so.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        self.life.map(|life| life.end.saturating_duration_since(now))
    }

    /// The refresh token alone is enough to end both.
    pub(super) fn to_revoke(&self) -> Option<(&'static str, SecretString)> {
        let refresh = self.refresh.clone().map(|token| ("refresh_token", token));
        refresh.or_else(|| Some(("access_token", self.access.clone()?)))
    }

    /// As they are kept.
    pub(super) fn kept(&self, login: &Login) -> Kept {
        let text = |token: &Option<SecretString>| token.as_ref().map(|token| token.expose_secret().to_owned());
        Kept {
            server: login.token_url.to_string(),
            client_id: login.client_id.clone(),
            access_token: text(&self.access),
            refresh_token: text(&self.refresh),
            obtained_at: self.obtained_at,
            lifetime_s: self.life.map(|life| life.whole.as_secs()),
        }
    }

    /// Kept ones, read at `wall` by the wall clock.
    pub(super) fn restored(kept: Kept, wall: Timestamp, now: Instant) -> Self {
        let whole = kept.lifetime_s.map(|seconds| Duration::from_secs(seconds).min(LONGEST));
        // A clock that shows a time before they were obtained says nothing of how old they are: they count as due.
        let age = Duration::try_from(wall.duration_since(kept.obtained_at)).ok();
        let left = |whole: Duration| age.map_or(Duration::ZERO, |age| whole.saturating_sub(age));
        let life = whole.and_then(|whole| {
            let end = now.checked_add(left(whole))?;
            Some(Life { whole, end })
        });
        Self {
            access: kept.access_token.map(SecretString::from),
            refresh: kept.refresh_token.map(SecretString::from),
            obtained_at: kept.obtained_at,
            life,
        }
    }
}

/// Tokens as they stand in `tokens.json` and in the keyring.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// For people who look into the file.
    server: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    obtained_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifetime_s: Option<u64>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("server", &self.server)
            .field("obtained_at", &self.obtained_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    /// An answer of the token endpoint.
    pub(in crate::auth::login) fn answer(
        access: &str,
        refresh: Option<&str>,
        expires_in: Option<u64>,
    ) -> BasicTokenResponse {
        let json = serde_json::json!({
            "access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": expires_in,
        });
        serde_json::from_value(json).unwrap_or_else(|error| unreachable!("{error}"))
    }

    fn is_good(tokens: &Tokens, after_s: u64) -> bool {
        matches!(
            tokens.standing(Instant::now() + Duration::from_secs(after_s)),
            Standing::Good(_)
        )
    }

    #[test]
    fn tokens_are_due_a_minute_before_their_end_and_short_ones_at_half_their_life() {
        let tokens = Tokens::of(&answer("a", Some("r"), Some(HOUR)), None);
        assert!(is_good(&tokens, HOUR - 70) && !is_good(&tokens, HOUR - 50));
        let short = Tokens::of(&answer("a", Some("r"), Some(60)), None);
        assert!(is_good(&short, 20) && !is_good(&short, 40));
    }

    #[test]
    fn without_a_refresh_token_or_an_end_only_the_provider_says_that_a_token_is_over() {
        let mut lone = Tokens::of(&answer("a", None, Some(1)), None);
        assert!(is_good(&lone, HOUR));
        lone.reject(&"another".into());
        assert!(is_good(&lone, 0));
        lone.reject(&"a".into());
        assert!(matches!(lone.standing(Instant::now()), Standing::Over));
        assert!(is_good(&Tokens::of(&answer("a", Some("r"), None), None), 1000 * HOUR));
    }

    #[test]
    fn a_renewal_without_a_new_refresh_token_keeps_the_old_one() {
        let first = Tokens::of(&answer("a", Some("r"), None), None);
        let second = Tokens::of(&answer("b", None, None), Some(&first));
        assert_eq!(second.secrets().collect::<Vec<_>>(), ["b", "r"]);
    }

    #[test]
    fn a_wall_clock_that_jumps_makes_kept_tokens_due_and_never_younger() -> anyhow::Result<()> {
        let login = login()?;
        let tokens = Tokens::of(&answer("a", Some("r"), Some(HOUR)), None);
        let (kept, now) = (tokens.kept(&login), Instant::now());
        let read = |after_s: i64| {
            let wall = kept.obtained_at + jiff::SignedDuration::from_secs(after_s);
            Tokens::restored(kept.clone(), wall, now)
        };
        assert!(is_good(&read(0), HOUR - 70) && !is_good(&read(0), HOUR - 50));
        assert!(is_good(&read(1800), 1700) && !is_good(&read(1800), 1800));
        for jump in [-10, -1_000_000, 1_000_000] {
            assert!(!is_good(&read(jump), 0), "{jump}");
        }
        Ok(())
    }

    #[test]
    fn an_endless_life_overflows_nothing() {
        let tokens = Tokens::of(&answer("a", Some("r"), Some(u64::MAX)), None);
        assert!(is_good(&tokens, 0));
    }

    #[test]
    fn what_is_kept_has_its_form_and_prints_no_token() -> anyhow::Result<()> {
        let mut kept = Tokens::of(&answer("hidden-a", Some("hidden-r"), Some(HOUR)), None).kept(&login()?);
        assert!(!format!("{kept:?}").contains("hidden"));
        kept.obtained_at = "2026-01-02T03:04:05Z".parse()?;
        insta::assert_json_snapshot!(kept, @r#"
        {
          "server": "https://id.example/token",
          "client_id": "c",
          "access_token": "hidden-a",
          "refresh_token": "hidden-r",
          "obtained_at": "2026-01-02T03:04:05Z",
          "lifetime_s": 3600
        }
        "#);
        Ok(())
    }

    fn login() -> anyhow::Result<Login> {
        super::super::tests::login("https://id.example", "")
    }
}
