//! `[models.NAME.login]`: where a person logs in for a profile with `auth = "login"`, and where its tokens are kept.
//!
//! Nothing is built in: endpoints, client id and scopes are what the provider gave the person. Checked here is that no token and no
//! code can go anywhere in the clear, and that the browser is sent back to this machine alone.

use std::fmt;

use secrecy::SecretString;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use url::{Host, Url};

use super::profile::ProfileError;

/// How a person logs in for a profile.
#[derive(Debug, Clone)]
pub struct Login {
    /// The name under which the provider knows this program.
    pub client_id: String,
    /// What some providers give installed programs beside it, although it cannot be kept from the person.
    pub client_secret: Option<SecretString>,
    /// Where a browser is sent; `None`: there is no login by browser.
    pub authorize_url: Option<Url>,
    /// Where a code for another device is asked for; `None`: there is no login by code.
    pub device_url: Option<Url>,
    /// Where tokens come from.
    pub token_url: Url,
    /// Where a logout is told; `None`: tokens are only forgotten.
    pub revoke_url: Option<Url>,
    /// What the provider calls itself in its answers; `None`: anything of the origin of `authorize_url`.
    pub issuer: Option<String>,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// Where the provider sends the browser back to, if it wants that registered; without a port any free one is used.
    pub redirect: Option<Url>,
    /// Where the tokens are kept.
    pub store: TokenPlace,
}

/// Where the tokens of a login are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenPlace {
    /// `tokens.json` in the state directory, for the user alone.
    #[default]
    File,
    /// The system's keyring.
    Keyring,
}

/// Names the tokens that profiles of one provider share: those of the same endpoints, client and place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoginId(String);

impl LoginId {
    /// 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LoginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Login {
    /// Which tokens these settings lead to.
    pub fn id(&self) -> LoginId {
        let address = |url: &Option<Url>| url.as_ref().map_or("-", Url::as_str).to_owned();
        let parts = [
            self.token_url.as_str().to_owned(),
            address(&self.authorize_url),
            address(&self.device_url),
            self.client_id.clone(),
            format!("{:?}", self.store),
        ];
        let hash = Sha256::digest(parts.join("\n"));
        LoginId(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// The host that tokens come from.
    pub fn host(&self) -> &str {
        self.token_url.host_str().unwrap_or_default()
    }
}

/// The table as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    client_id: String,
    client_secret: Option<String>,
    authorize_url: Option<Address>,
    device_url: Option<Address>,
    token_url: Address,
    revoke_url: Option<Address>,
    issuer: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    redirect: Option<Address>,
    #[serde(default)]
    store: TokenPlace,
}

/// An address as written. What is wrong with it is said without repeating it.
#[derive(Deserialize)]
#[serde(transparent)]
struct Address(String);

/// Whether plain `http` may leave the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Anywhere,
    Loopback,
}

impl Table {
    /// The settings, if they are safe.
    pub(super) fn checked(self, plain: Plain) -> Result<Login, ProfileError> {
        if self.client_id.trim().is_empty() {
            return Err(ProfileError::Empty("client_id"));
        }
        if self.authorize_url.is_none() && self.device_url.is_none() {
            return Err(ProfileError::NoLoginWay);
        }
        let endpoint = |key, written: Option<Address>| written.map(|written| written.endpoint(key, plain)).transpose();
        Ok(Login {
            client_id: self.client_id,
            client_secret: self.client_secret.map(SecretString::from),
            authorize_url: endpoint("authorize_url", self.authorize_url)?,
            device_url: endpoint("device_url", self.device_url)?,
            token_url: self.token_url.endpoint("token_url", plain)?,
            revoke_url: endpoint("revoke_url", self.revoke_url)?,
            issuer: self.issuer,
            scopes: self.scopes,
            redirect: self.redirect.map(Address::redirect).transpose()?,
            store: self.store,
        })
    }
}

impl Address {
    fn endpoint(self, key: &'static str, plain: Plain) -> Result<Url, ProfileError> {
        let wrong = |reason| ProfileError::LoginAddress { key, reason };
        let url = Url::parse(&self.0).map_err(|_| wrong("it is no URL"))?;
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(wrong("an endpoint has no user, password or fragment"));
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if plain == Plain::Anywhere || is_loopback(&url) => Ok(url),
            _ => Err(wrong("it must be https")),
        }
    }

    fn redirect(self) -> Result<Url, ProfileError> {
        let wrong = |reason| ProfileError::LoginAddress {
            key: "redirect",
            reason,
        };
        let url = Url::parse(&self.0).map_err(|_| wrong("it is no URL"))?;
        let bare = url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
        if url.scheme() != "http" || !is_loopback(&url) || !bare {
            return Err(wrong(
                "it must be http on 127.0.0.1, [::1] or localhost, with nothing behind its path",
            ));
        }
        Ok(url)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::profile::{KeySource, Profile};
    use super::*;

    const LOGIN: &str =
        "client_id = 'c'\ntoken_url = 'https://id.example/token'\ndevice_url = 'https://id.example/device'";

    fn profile(login: &str) -> Result<Profile, toml::de::Error> {
        toml::from_str(&format!(
            "wire = 'openai-chat'\nmodel = 'm'\nauth = 'login'\n[login]\n{login}"
        ))
    }

    fn login(text: &str) -> Login {
        match profile(text).unwrap().key {
            KeySource::Login(login) => Login::clone(&login),
            other => unreachable!("{other:?}"),
        }
    }

    fn refusal(text: &str) -> String {
        profile(text)
            .err()
            .map(|error| error.message().to_owned())
            .unwrap_or_default()
    }

    #[test]
    fn a_login_has_a_client_a_token_endpoint_and_a_way() {
        assert_eq!(login(LOGIN).store, TokenPlace::File);
        assert!(refusal("token_url = 'https://id.example/token'").contains("client_id"));
        assert!(
            refusal("client_id = 'c'\ntoken_url = 'https://id.example/token'").contains("authorize_url or device_url")
        );
        assert!(refusal(&format!("{LOGIN}\nclinet_secret = 'x'")).contains("clinet_secret"));
    }

    #[test]
    fn auth_login_and_its_table_go_together() {
        let without = toml::from_str::<Profile>("wire = 'openai-chat'\nmodel = 'm'\nauth = 'login'").err();
        assert!(without.is_some_and(|error| error.message().contains("[models.NAME.login]")));
        let unused = format!("wire = 'openai-chat'\nmodel = 'm'\nauth = 'none'\n[login]\n{LOGIN}");
        assert!(toml::from_str::<Profile>(&unused).is_err());
    }

    #[test]
    fn nothing_of_a_login_goes_in_the_clear_or_to_another_machine() {
        let with = |line: &str| refusal(&format!("{LOGIN}\n{line}"));
        assert!(with("authorize_url = 'http://id.example/a'").contains("https"));
        assert_eq!(with("authorize_url = 'http://127.0.0.1:1/a'"), "");
        assert_eq!(with("authorize_url = 'http://[::1]:1/a'"), "");
        assert!(!with("revoke_url = 'https://me:secret@id.example/r'").contains("secret"));
        for redirect in [
            "https://127.0.0.1/cb",
            "http://10.0.0.1/cb",
            "http://localhost.example/cb",
            "http://127.0.0.1/cb?x=1",
        ] {
            assert!(
                with(&format!("redirect = '{redirect}'")).contains("127.0.0.1, [::1] or localhost"),
                "{redirect}"
            );
        }
        assert_eq!(with("redirect = 'http://localhost/callback'"), "");
    }

    #[test]
    fn profiles_of_one_client_at_one_provider_share_their_tokens() {
        let one = login(LOGIN).id();
        assert_eq!(
            one,
            login(&format!("{LOGIN}\nscopes = ['a']\nclient_secret = 's'")).id()
        );
        for other in ["authorize_url = 'https://id.example/a'", "store = 'keyring'"] {
            assert_ne!(one, login(&format!("{LOGIN}\n{other}")).id(), "{other}");
        }
        assert_ne!(one, login(&LOGIN.replace("'c'", "'d'")).id());
    }

    #[test]
    fn what_prints_shows_no_client_secret() {
        assert!(!format!("{:?}", login(&format!("{LOGIN}\nclient_secret = 'hidden'"))).contains("hidden"));
    }
}
