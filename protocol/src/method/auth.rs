//! Logging in: a person gives this daemon tokens of a provider, and takes them back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Begins a login.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoginParams {
    /// The profile to log in for; absent: the default model's, or the only one that has a login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Absent: by browser where the profile's login can, else by code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<LoginWay>,
}

/// How a person logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginWay {
    /// In a browser on the daemon's machine, which comes back to a listener on its loopback address.
    Browser,
    /// Anywhere, by typing a code.
    Device,
}

/// A login that waits for the person.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LoginStarted {
    /// Names it in `auth.wait` and `auth.cancel`.
    pub login: String,
    pub way: LoginWay,
    /// The profiles that it is for, all that share the provider's endpoints and client.
    pub profiles: Vec<String>,
    /// What the person opens. With `way: device` it is the provider's word: show it through `display`.
    pub url: String,
    /// The host of `url`.
    pub host: String,
    /// What the person types there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How long it waits, in milliseconds.
    pub expires_in_ms: u64,
}

/// One login.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRef {
    pub login: String,
}

/// A login that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedIn {
    pub profiles: Vec<String>,
    /// Where the tokens are kept: a path, or `keyring`.
    pub kept: String,
    /// When the access token ends, in milliseconds from now; absent if the provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Whether the daemon renews it by itself.
    pub renews: bool,
}

/// Forgets tokens.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogoutParams {
    /// As for `auth.login`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Tokens that are forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedOut {
    pub profiles: Vec<String>,
    /// Whether there were any.
    pub was_in: bool,
    /// Whether the provider was told to end them too.
    pub revoked: Revoked,
    /// Why the provider did not take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Whether the provider has ended tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Revoked {
    Yes,
    /// The profile's login names no `revoke_url`, or there was nothing to end.
    NotAsked,
    /// It was asked and refused, or could not be reached.
    Failed,
}
