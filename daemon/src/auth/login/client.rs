//! What is asked of a provider: a code for a device, tokens for a code, new tokens for old, an end. The words of OAuth 2 are the `oauth2`
//! crate's, the connection is the daemon's own.
//!
//! An answer is never repeated in an error: what does not parse as tokens may still be some.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use oauth2::basic::{BasicClient, BasicErrorResponse, BasicErrorResponseType, BasicTokenResponse};
use oauth2::http::{Method, Request, header};
use oauth2::{
    AsyncHttpClient, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, DeviceAuthorizationUrl,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, ErrorResponse, HttpRequest, HttpResponse, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope, StandardDeviceAuthorizationResponse,
    TokenUrl,
};
use secrecy::{ExposeSecret, SecretString};
use url::{Url, form_urlencoded};

use super::error::LoginError;
use crate::config::login::Login;

/// Longer than any login is waited for: how long the crate's own, wall-clock bound is kept out of the way.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The connection to a provider's endpoints.
#[async_trait]
pub trait TokenHttp: Send + Sync {
    /// Sends one request and gives its answer. Follows no redirect; bounded in time and bytes.
    ///
    /// # Errors
    /// No whole answer came, or one that says that the server has trouble of its own.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailed>;
}

/// Why no answer came; without the request's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpFailed(pub String);

/// The connection as the crate wants it: with a lifetime in its type, so that futures over it can move between threads.
#[derive(Clone)]
struct Connection(Arc<dyn TokenHttp>);

impl<'c> AsyncHttpClient<'c> for Connection {
    type Error = HttpFailed;
    type Future = BoxFuture<'c, Result<HttpResponse, HttpFailed>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        self.0.send(request)
    }
}

type OauthClient = BasicClient<EndpointMaybeSet, EndpointMaybeSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// Asks one provider.
#[derive(Clone)]
pub(super) struct Client {
    oauth: OauthClient,
    login: Arc<Login>,
    http: Connection,
}

/// How a renewal failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RenewalError {
    /// The provider does not take the refresh token any more: the person has to log in again.
    Over(LoginError),
    /// Something else, after which the refresh token may still be good.
    Failed(LoginError),
}

/// A browser's way out and what is to come back.
pub(super) struct Sent {
    pub(super) url: Url,
    pub(super) state: CsrfToken,
    pub(super) verifier: PkceCodeVerifier,
}

impl Client {
    pub(super) fn new(login: Arc<Login>, http: Arc<dyn TokenHttp>) -> Self {
        let mut oauth = BasicClient::new(ClientId::new(login.client_id.clone()))
            .set_auth_uri_option(login.authorize_url.clone().map(AuthUrl::from_url))
            .set_device_authorization_url_option(login.device_url.clone().map(DeviceAuthorizationUrl::from_url))
            .set_token_uri(TokenUrl::from_url(login.token_url.clone()));
        if let Some(secret) = &login.client_secret {
            oauth = oauth.set_client_secret(ClientSecret::new(secret.expose_secret().to_owned()));
        }
        Self {
            oauth,
            login,
            http: Connection(http),
        }
    }

    /// The client of another login, over the same connection.
    pub(super) fn of(&self, login: Arc<Login>) -> Self {
        Self::new(login, Arc::clone(&self.http.0))
    }

    fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.login.scopes.iter().cloned().map(Scope::new)
    }

    /// The address for a browser that comes back to `redirect`; `None` where the login has no `authorize_url`.
    pub(super) fn authorize(&self, redirect: Url) -> Option<Sent> {
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let request = self.oauth.authorize_url(CsrfToken::new_random).ok()?;
        let (url, state) = request
            .add_scopes(self.scopes())
            .set_pkce_challenge(challenge)
            .set_redirect_uri(std::borrow::Cow::Owned(RedirectUrl::from_url(redirect)))
            .url();
        Some(Sent { url, state, verifier })
    }

    /// The tokens for the code that the browser brought back.
    pub(super) async fn exchange(
        &self,
        code: String,
        verifier: PkceCodeVerifier,
        redirect: Url,
    ) -> Result<BasicTokenResponse, LoginError> {
        let answer = self
            .oauth
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(verifier)
            .set_redirect_uri(std::borrow::Cow::Owned(RedirectUrl::from_url(redirect)))
            .request_async(&self.http)
            .await;
        answer.map_err(|error| self.told(&self.login.token_url, error))
    }

    /// A code that a person types elsewhere; `None` where the login has no `device_url`.
    pub(super) async fn device_code(&self) -> Option<Result<StandardDeviceAuthorizationResponse, LoginError>> {
        let (url, request) = (self.login.device_url.as_ref()?, self.oauth.exchange_device_code().ok()?);
        let answer = request.add_scopes(self.scopes()).request_async(&self.http).await;
        Some(answer.map_err(|error| self.told(url, error)))
    }

    /// Asks until the provider has decided, and has `sleep` wait between two questions for as long as it wants. Unbounded.
    pub(super) async fn device_tokens<S>(
        &self,
        device: &StandardDeviceAuthorizationResponse,
        sleep: impl Fn(Duration) -> S + Send + Sync,
    ) -> Result<BasicTokenResponse, LoginError>
    where
        S: Future<Output = ()> + Send,
    {
        let request = self.oauth.exchange_device_access_token(device);
        let answer = request.request_async(&self.http, sleep, Some(NEVER)).await;
        answer.map_err(|error| self.told(&self.login.token_url, error))
    }

    /// New tokens for a refresh token.
    pub(super) async fn renew(&self, refresh: &SecretString) -> Result<BasicTokenResponse, RenewalError> {
        let refresh = RefreshToken::new(refresh.expose_secret().to_owned());
        let answer = self
            .oauth
            .exchange_refresh_token(&refresh)
            .request_async(&self.http)
            .await;
        answer.map_err(|error| {
            let over = matches!(&error, RequestTokenError::ServerResponse(said) if is_over(said));
            let told = self.told(&self.login.token_url, error);
            if over {
                RenewalError::Over(told)
            } else {
                RenewalError::Failed(told)
            }
        })
    }

    /// Ends a token at the provider, which ends those that belong to it too; `None` where the login has no `revoke_url`.
    ///
    /// The crate's own request refuses plain `http`, which the configuration has judged already.
    pub(super) async fn revoke(&self, hint: &str, token: &SecretString) -> Option<Result<(), LoginError>> {
        let url = self.login.revoke_url.as_ref()?;
        let request = self.revocation(url, hint, token);
        let host = host(url);
        let request = match request {
            Ok(request) => request,
            Err(_) => return Some(Err(unexpected(host, "its address is none"))),
        };
        Some(match self.http.call(request).await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(LoginError::refused(
                &host,
                &format!("HTTP status {}", answer.status().as_u16()),
            )),
            Err(HttpFailed(reason)) => Err(LoginError::Unreachable { host, reason }),
        })
    }

    fn revocation(&self, url: &Url, hint: &str, token: &SecretString) -> Result<HttpRequest, oauth2::http::Error> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token.expose_secret());
        form.append_pair("token_type_hint", hint);
        form.append_pair("client_id", &self.login.client_id);
        if let Some(secret) = &self.login.client_secret {
            form.append_pair("client_secret", secret.expose_secret());
        }
        Request::builder()
            .method(Method::POST)
            .uri(url.as_str())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.finish().into_bytes())
    }

    /// The crate's error without the answer it holds.
    fn told<T: ErrorResponse>(&self, url: &Url, error: RequestTokenError<HttpFailed, T>) -> LoginError {
        let host = host(url);
        match error {
            RequestTokenError::ServerResponse(said) => LoginError::refused(&host, &said.to_string()),
            RequestTokenError::Request(HttpFailed(reason)) => LoginError::Unreachable { host, reason },
            RequestTokenError::Parse(error, _) if error.path().iter().next().is_some() => {
                unexpected(host, &format!("`{}` is missing or wrong", error.path()))
            }
            RequestTokenError::Parse(..) => unexpected(host, "it is no JSON of its kind"),
            RequestTokenError::Other(what) => unexpected(host, &what),
        }
    }
}

/// Whether a refusal means that the refresh token is of no use any more.
fn is_over(said: &BasicErrorResponse) -> bool {
    matches!(said.error(), BasicErrorResponseType::InvalidGrant)
}

fn unexpected(host: String, what: &str) -> LoginError {
    LoginError::Unexpected {
        host,
        what: what.to_owned(),
    }
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}
