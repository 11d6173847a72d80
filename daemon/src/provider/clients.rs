//! The HTTP clients of all profiles: built when they are first needed, shared, and told which way their requests go. None follows a
//! redirect, so a key reaches the profile's own origin and nothing else.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, Url};
use tokio::time::timeout;

use super::address::{address, is_loopback};
use super::error::{Class, ModelError};
use super::http::chain;
use crate::config::profile::Profile;

/// Idle connections kept to one provider: a session and a few children talk at the same time.
const IDLE_CONNECTIONS: usize = 8;

/// The HTTP clients of all profiles. Clones share them. A client, with the system's certificates, is built when the first
/// call needs it, so that an idle daemon holds none.
#[derive(Clone, Default)]
pub struct Http {
    /// One client per connect timeout and route, which are properties of the client. A handful at most: one per distinct setting.
    clients: Arc<Mutex<Vec<(Duration, Route, Client)>>>,
}

/// How a request gets to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// As the proxy variables of the daemon's own environment say.
    Usual,
    /// Past every proxy. A server on this machine is reached without TLS, and through a proxy the key and all that is said would go to
    /// another machine in the clear.
    Direct,
}

impl Route {
    pub(super) fn to(url: &Url) -> Self {
        if is_loopback(url.host_str().unwrap_or_default()) {
            Self::Direct
        } else {
            Self::Usual
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    /// Makes a connection to `profile`'s provider and keeps it for the first call. Only over TLS, whose handshake is what takes time,
    /// and without the key. What comes of it does not matter.
    pub async fn warm(&self, profile: &Profile) {
        let Ok(mut url) = address(profile, "") else { return };
        let http = self.clone();
        let (connect, route) = (profile.timeouts.connect, Route::to(&url));
        // The first client reads the system's certificates.
        let built = tokio::task::spawn_blocking(move || http.client(connect, route)).await;
        let Ok(Ok(client)) = built else { return };
        if url.scheme() != "https" {
            return;
        }
        url.set_path("/");
        url.set_query(None);
        let _ = (url.set_username(""), url.set_password(None));
        let _answered = timeout(connect, client.head(url).send()).await;
    }

    /// The client that gives up connecting after `connect`.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(super) fn client(&self, connect: Duration, route: Route) -> Result<Client, ModelError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&(Duration, Route, Client)| (known.0, known.1) == (connect, route);
        if let Some((.., client)) = clients.iter().find(same) {
            return Ok(client.clone());
        }
        let client = build(connect, route)
            .map_err(|error| ModelError::new(Class::Connect, format!("no HTTP client: {}", chain(&error))))?;
        clients.push((connect, route, client.clone()));
        Ok(client)
    }
}

fn build(connect: Duration, route: Route) -> reqwest::Result<Client> {
    // A second installation answers with an error that says the same provider is there already.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = match route {
            Route::Usual => Client::builder(),
            Route::Direct => Client::builder().no_proxy(),
        };
        builder
            .connect_timeout(connect)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .tcp_keepalive(Duration::from_secs(30))
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
    };
    builder().build().or_else(|_no_system_roots| {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
            .iter()
            .filter_map(|root| reqwest::Certificate::from_der(root.as_ref()).ok());
        builder().tls_certs_only(roots).build()
    })
}
