//! One GET with its redirects, bounded in time, in bytes after decompression, and in where it may go.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url};

use super::reach::{Reach, Refused, Screen, screened};
use crate::tool::{StopLevel, StopSignal};

/// How long one request may take, redirects and body together.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Bytes of a body after decompression; what comes after is not read.
const BODY_LIMIT_BYTES: usize = 5 * 1024 * 1024;

/// Redirects within one host.
const REDIRECT_LIMIT: usize = 5;

/// Asks for text where a server can choose.
const ACCEPTED: &str = "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5";

/// The web as the tools see it. Cheap to clone; its clients are built when first needed.
#[derive(Debug, Clone)]
pub(in crate::tool) struct Web {
    pub(in crate::tool) reach: Arc<Reach>,
    /// At most one for each kind of screening.
    clients: Arc<Mutex<HashMap<Screen, Client>>>,
}

/// What a request led to.
#[derive(Debug)]
pub(in crate::tool) enum Fetched {
    Page(Page),
    /// The server points to another host, which is for another call to ask.
    Elsewhere {
        from: Url,
        to: Url,
    },
}

/// An answer.
#[derive(Debug)]
pub(in crate::tool) struct Page {
    /// Where it came from after redirects.
    pub(in crate::tool) url: Url,
    pub(in crate::tool) status: reqwest::StatusCode,
    pub(in crate::tool) content_type: String,
    pub(in crate::tool) body: Vec<u8>,
    pub(in crate::tool) extent: Extent,
}

/// Whether a body was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tool) enum Extent {
    Whole,
    Cut,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::tool) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("{0}")]
    Network(String),
    #[error("no complete answer within {} s", TIME_LIMIT.as_secs())]
    TimedOut,
    #[error("stopped")]
    Stopped,
}

impl Web {
    pub(in crate::tool) fn new(reach: Reach) -> Self {
        Self {
            reach: Arc::new(reach),
            clients: Arc::default(),
        }
    }

    /// Reads `url`.
    ///
    /// # Errors
    /// See [`Failure`]; an answer with an error status is none.
    pub(in crate::tool) async fn get(&self, url: Url, stop: &mut StopSignal) -> Result<Fetched, Failure> {
        tokio::select! {
            fetched = tokio::time::timeout(TIME_LIMIT, self.follow(url)) => fetched.unwrap_or(Err(Failure::TimedOut)),
            // A closed channel means that nobody wants the call any more.
            _ = stop.wait_for(|level| *level > StopLevel::Run) => Err(Failure::Stopped),
        }
    }

    async fn follow(&self, mut url: Url) -> Result<Fetched, Failure> {
        for _ in 0..=REDIRECT_LIMIT {
            let screen = self.reach.screen(&url)?;
            let request = self
                .client(screen)?
                .get(url.clone())
                .header(ACCEPT, HeaderValue::from_static(ACCEPTED));
            let response = request.send().await.map_err(|error| network(&error.without_url()))?;
            match redirect(&response, &url)? {
                None => return page(response, url).await.map(Fetched::Page),
                Some(to) if to.host_str() != url.host_str() => {
                    // What no other call could read either is not offered to one.
                    let refused = |Refused(why)| Refused(format!("the server redirects to {to}: {why}"));
                    self.reach.screen(&to).map_err(refused)?;
                    return Ok(Fetched::Elsewhere { from: url, to });
                }
                Some(to) => url = to,
            }
        }
        Err(Failure::Network(format!("more than {REDIRECT_LIMIT} redirects")))
    }

    fn client(&self, screen: Screen) -> Result<Client, Failure> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&screen) {
            return Ok(client.clone());
        }
        let client = build(screen).map_err(|error| network(&error))?;
        clients.insert(screen, client.clone());
        Ok(client)
    }
}

/// No proxy: it would look names up itself, where nobody can see what they mean. No connection is kept: each request passes the
/// resolver, so that no name can change its meaning between two.
fn build(screen: Screen) -> reqwest::Result<Client> {
    // A second installation answers with an error that says the same provider is there already.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        Client::builder()
            .dns_resolver(Arc::new(Screened(screen)))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(0)
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
    };
    builder().build().or_else(|_no_system_roots| {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
            .iter()
            .filter_map(|root| reqwest::Certificate::from_der(root.as_ref()).ok());
        builder().tls_certs_only(roots).build()
    })
}

/// The one resolver step: what it answers is all that is connected to.
struct Screened(Screen);

impl Resolve for Screened {
    fn resolve(&self, name: Name) -> Resolving {
        let screen = self.0;
        Box::pin(async move {
            let name = name.as_str();
            let found = tokio::net::lookup_host((name, 0)).await?;
            let addresses = screened(name, screen, found.map(|address| address.ip()).collect())?;
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// Where an answer points to, if it only does that.
fn redirect(response: &Response, from: &Url) -> Result<Option<Url>, Failure> {
    let Some(location) = response
        .headers()
        .get(LOCATION)
        .filter(|_| response.status().is_redirection())
    else {
        return Ok(None);
    };
    let bad = || Failure::Network("the server redirects to something that is no address".into());
    let mut to = from.join(location.to_str().map_err(|_| bad())?).map_err(|_| bad())?;
    to.set_fragment(None);
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(Refused(format!(
            "the server redirects from https to {to}, which is not followed"
        ))
        .into());
    }
    Ok(Some(to))
}

async fn page(mut response: Response, url: Url) -> Result<Page, Failure> {
    let status = response.status();
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    let (mut body, mut extent) = (Vec::new(), Extent::Whole);
    while let Some(chunk) = response.chunk().await.map_err(|error| network(&error.without_url()))? {
        let room = BODY_LIMIT_BYTES - body.len();
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            extent = Extent::Cut;
            break;
        }
    }
    Ok(Page {
        url,
        status,
        content_type,
        body,
        extent,
    })
}

/// An error with its causes, which hold what really happened.
fn network(error: &reqwest::Error) -> Failure {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return refused.clone().into();
        }
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    Failure::Network(text)
}

#[cfg(test)]
mod tests;
