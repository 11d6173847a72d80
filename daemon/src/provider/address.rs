//! What of a profile decides where its key goes: the checked address and the headers.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

use super::error::{Class, ModelError};
use crate::config::profile::Profile;

/// The checked address of `profile`'s requests.
pub(super) fn address(profile: &Profile, path: &str) -> Result<Url, ModelError> {
    // A query (Azure's `?api-version=`) stays behind the path.
    let (base, query) = match profile.base_url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (profile.base_url.as_str(), None),
    };
    // A base that already names the version does not get it twice.
    let base = base.trim_end_matches('/');
    let base = if path.starts_with("/v1/") {
        base.strip_suffix("/v1").unwrap_or(base)
    } else {
        base
    };
    let mut url = Url::parse(&format!("{base}{path}"))
        .map_err(|error| refused(format!("base_url of profile `{}` is no URL: {error}", profile.name)))?;
    url.set_query(query);
    url.set_fragment(None);
    let host = url.host_str().unwrap_or_default();
    match url.scheme() {
        "https" => Ok(url),
        "http" if profile.allow_http || is_loopback(host) => Ok(url),
        "http" => Err(refused(format!(
            "base_url of profile `{}` would send the key to {host} in the clear",
            profile.name
        ))
        .with_hint("use https, or set allow_http = true if the network is trusted")),
        scheme => Err(refused(format!(
            "base_url of profile `{}` is {scheme}, not https",
            profile.name
        ))),
    }
}

/// Whether `host` is this machine and reached without a network.
pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The profile's own headers, their values marked as secrets.
pub(super) fn extra_headers(profile: &Profile) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &profile.headers {
        let wrong = || {
            refused(format!(
                "header `{}` of profile `{}` is not valid",
                name.escape_debug(),
                profile.name
            ))
        };
        let key: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

pub(super) fn refused(message: impl AsRef<str>) -> ModelError {
    ModelError::new(Class::Refused, message)
}
