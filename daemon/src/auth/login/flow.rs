//! The two ways a person logs in: in a browser on this machine that comes back with a code, or anywhere, by typing a code while the
//! daemon asks whether it has been. Each is what the person is to be shown, and a future that ends with the tokens.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use oauth2::basic::BasicTokenResponse;
use protocol::method::LoginWay;

use super::account::Account;
use super::error::LoginError;
use super::loopback::{Expected, Loopback};

/// How long a login waits for the browser.
const BROWSER: Duration = Duration::from_secs(5 * 60);

/// The longest that a typed code is waited for, whatever the provider allows.
const DEVICE: Duration = Duration::from_secs(30 * 60);

/// The least time between two questions to a provider, whatever it allows.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a login waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) browser: Duration,
    pub(super) device: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            browser: BROWSER,
            device: DEVICE,
        }
    }
}

/// A login that waits for the person.
pub(super) struct Begun {
    pub(super) way: LoginWay,
    pub(super) url: String,
    pub(super) host: String,
    pub(super) code: Option<String>,
    pub(super) expires_in: Duration,
    /// Ends with the tokens.
    pub(super) tokens: BoxFuture<'static, Result<BasicTokenResponse, LoginError>>,
}

/// The way a profile's login has, if the person did not name one.
pub(super) fn usual(account: &Account) -> LoginWay {
    match account.login().authorize_url {
        Some(_) => LoginWay::Browser,
        None => LoginWay::Device,
    }
}

/// By browser.
///
/// # Errors
/// No `authorize_url`, or nothing can be listened at.
pub(super) async fn browser(account: &Account, patience: Patience) -> Result<Begun, LoginError> {
    let login = account.login();
    let lacks = || LoginError::NoWay {
        profile: account.profiles().first().cloned().unwrap_or_default(),
        endpoint: "authorize_url",
    };
    let authorize_url = login.authorize_url.clone().ok_or_else(lacks)?;
    let loopback = Loopback::bind(login.redirect.as_ref()).await;
    let loopback = loopback.map_err(|error| LoginError::Listener(error.to_string()))?;
    let redirect = loopback.redirect().clone();
    let sent = account.client().authorize(redirect.clone()).ok_or_else(lacks)?;
    let (url, host) = (sent.url.to_string(), sent.url.host_str().unwrap_or_default().to_owned());
    let account = account.clone();
    let tokens = async move {
        let issuer = account.login().issuer.as_deref();
        let expected = Expected {
            host: authorize_url.host_str().unwrap_or_default(),
            state: &sent.state,
            issuer,
            authorize_url: &authorize_url,
        };
        let callback = tokio::time::timeout(patience.browser, loopback.callback(&expected)).await;
        let code = callback.map_err(|_| LoginError::TimedOut(patience.browser))??.code;
        account.client().exchange(code, sent.verifier, redirect).await
    };
    Ok(Begun {
        way: LoginWay::Browser,
        url,
        host,
        code: None,
        expires_in: patience.browser,
        tokens: tokens.boxed(),
    })
}

/// By a code that is typed elsewhere.
///
/// # Errors
/// No `device_url`, or the provider gives no code.
pub(super) async fn device(account: &Account, patience: Patience) -> Result<Begun, LoginError> {
    let device = account.client().device_code().await;
    let device = device.ok_or_else(|| LoginError::NoWay {
        profile: account.profiles().first().cloned().unwrap_or_default(),
        endpoint: "device_url",
    })??;
    let url = device.verification_uri().url().clone();
    if !matches!(url.scheme(), "https" | "http") {
        return Err(LoginError::Unexpected {
            host: account.login().host().to_owned(),
            what: "the address to visit is no web page".to_owned(),
        });
    }
    let expires_in = device.expires_in().min(patience.device);
    let code = device.user_code().secret().clone();
    let account = account.clone();
    let tokens = async move {
        let sleep = |wanted: Duration| tokio::time::sleep(wanted.max(PAUSE));
        let asked = account.client().device_tokens(&device, sleep);
        let answer = tokio::time::timeout(expires_in, asked).await;
        answer.unwrap_or(Err(LoginError::TimedOut(expires_in)))
    };
    Ok(Begun {
        way: LoginWay::Device,
        host: url.host_str().unwrap_or_default().to_owned(),
        url: url.to_string(),
        code: Some(code),
        expires_in,
        tokens: tokens.boxed(),
    })
}
