//! The address on this machine that a provider sends the person's browser back to.
//!
//! It is a TCP listener, so web pages and other users can reach it too: it is at loopback addresses alone, on a port and a path that
//! nobody can guess, takes exactly one request that is a GET for its own Host and path, answers with a page that is the same for
//! everybody, and closes. Whose answer it was is told by `state`. Nothing of a request is logged.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use oauth2::CsrfToken;
use subtle::ConstantTimeEq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::{Host, Url, form_urlencoded};

use super::error::LoginError;

/// Bytes of a request's head; a code has a few hundred.
const HEAD_BYTES: usize = 16 * 1024;

/// Headers of a request.
const HEADERS: usize = 64;

/// How long one connection may take to say what it wants. Browsers open some that they never use.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that are listened to at once; further ones wait.
const CONNECTIONS: usize = 8;

/// The page everybody gets. It has no script, shows nothing of the request and loads nothing.
const PAGE: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>agentd</title></head>\
<body><p>agentd has the answer. You can close this page and go back to your terminal, which says how it went.</p></body></html>\n";

/// What the provider had the browser say. It does not print.
pub(super) struct Callback {
    /// The authorization code.
    pub(super) code: String,
}

/// The listener before its one request.
#[derive(Debug)]
pub(super) struct Loopback {
    first: TcpListener,
    /// The same port at the other loopback address, where the name `localhost` may lead to either.
    second: Option<TcpListener>,
    redirect: Url,
}

impl Loopback {
    /// Listens at `registered`, or, where the provider lets clients choose, at a free port and a random path of 127.0.0.1, of ::1 on
    /// a machine that has no other.
    ///
    /// # Errors
    /// No such address, or its port is taken.
    pub(super) async fn bind(registered: Option<&Url>) -> io::Result<Self> {
        let Some(registered) = registered else {
            let path = CsrfToken::new_random().into_secret();
            let first = match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await {
                Ok(listener) => listener,
                Err(_no_ipv4) => TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await?,
            };
            let redirect = Url::parse(&format!("http://{}/{path}", first.local_addr()?)).map_err(io::Error::other)?;
            return Ok(Self {
                first,
                second: None,
                redirect,
            });
        };
        let port = registered.port().unwrap_or(0);
        let (first, second) = match registered.host() {
            Some(Host::Ipv4(ip)) => (TcpListener::bind((ip, port)).await?, None),
            Some(Host::Ipv6(ip)) => (TcpListener::bind((ip, port)).await?, None),
            _ => both(port).await?,
        };
        let mut redirect = registered.clone();
        let bound = first.local_addr()?.port();
        redirect
            .set_port(Some(bound))
            .map_err(|()| io::Error::other("the address takes no port"))?;
        Ok(Self {
            first,
            second,
            redirect,
        })
    }

    /// Where the browser is to come back to.
    pub(super) fn redirect(&self) -> &Url {
        &self.redirect
    }

    /// Waits for the one request and judges what it brings. Unbounded; the listener is closed at its end.
    ///
    /// # Errors
    /// `Foreign` for an answer to something else, `Refused` where the provider or the person said no.
    pub(super) async fn callback(self, expected: &Expected<'_>) -> Result<Callback, LoginError> {
        let query = self
            .query()
            .await
            .map_err(|error| LoginError::Listener(error.to_string()))?;
        expected.judge(&query)
    }

    /// The query of the first request that is one for us.
    async fn query(self) -> io::Result<String> {
        let mut conversations = JoinSet::new();
        loop {
            tokio::select! {
                stream = self.accept(), if conversations.len() < CONNECTIONS => {
                    let (host, path) = (authority(&self.redirect), self.redirect.path().to_owned());
                    conversations.spawn(timeout(PATIENCE, converse(stream?, host, path)));
                }
                Some(ended) = conversations.join_next() => {
                    if let Ok(Ok(Ok(Some(query)))) = ended {
                        return Ok(query);
                    }
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        let second = async {
            match &self.second {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        let (stream, _) = tokio::select! {
            accepted = self.first.accept() => accepted?,
            accepted = second => accepted?,
        };
        Ok(stream)
    }
}

/// Both loopback addresses at one port; the second only where the machine has it.
async fn both(port: u16) -> io::Result<(TcpListener, Option<TcpListener>)> {
    let first = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
        Ok(first) => first,
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            return Ok((TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await?, None));
        }
        Err(error) => return Err(error),
    };
    let other = SocketAddr::from((Ipv6Addr::LOCALHOST, first.local_addr()?.port()));
    match TcpListener::bind(other).await {
        Ok(second) => Ok((first, Some(second))),
        // Somebody else there would get the browser's answer.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(_no_ipv6) => Ok((first, None)),
    }
}

/// What the `Host` header of a request for `redirect` says.
fn authority(redirect: &Url) -> String {
    let host = redirect.host_str().unwrap_or_default();
    match redirect.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Reads one request, answers it, and gives its query if it is one for us.
async fn converse(mut stream: TcpStream, host: String, path: String) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let judged = loop {
        match judge(&head, &host, &path) {
            Judged::Incomplete if head.len() >= HEAD_BYTES => {
                break Judged::Refused("431 Request Header Fields Too Large");
            }
            Judged::Incomplete => {}
            judged => break judged,
        }
        let room = HEAD_BYTES - head.len();
        if (&mut stream).take(room as u64).read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    };
    let (status, body, query) = match judged {
        Judged::Ours(query) => ("200 OK", PAGE, Some(query)),
        Judged::Refused(status) => (status, "", None),
        Judged::Incomplete => return Ok(None),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    // A browser that does not want the page has brought its answer all the same.
    let _written = stream.write_all(answer.as_bytes()).await;
    let _closed = stream.shutdown().await;
    Ok(query)
}

/// What a request is, so far. It does not print.
enum Judged {
    Incomplete,
    /// With its query.
    Ours(String),
    Refused(&'static str),
}

fn judge(head: &[u8], host: &str, path: &str) -> Judged {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Judged::Incomplete,
        Err(_) => return Judged::Refused("400 Bad Request"),
    }
    let mut hosts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"));
    // A name of another's choosing that leads here is how a web page would speak to us.
    let is_host = hosts
        .next()
        .is_some_and(|header| header.value.eq_ignore_ascii_case(host.as_bytes()));
    if !is_host || hosts.next().is_some() {
        return Judged::Refused("421 Misdirected Request");
    }
    if request.method != Some("GET") {
        return Judged::Refused("405 Method Not Allowed");
    }
    let (asked, query) = request.path.unwrap_or_default().split_once('?').unwrap_or_default();
    if asked.as_bytes().ct_eq(path.as_bytes()).into() {
        Judged::Ours(query.to_owned())
    } else {
        Judged::Refused("404 Not Found")
    }
}

/// What makes an answer one to this login.
pub(super) struct Expected<'a> {
    /// Who answers, for people.
    pub(super) host: &'a str,
    pub(super) state: &'a CsrfToken,
    /// What the provider calls itself.
    pub(super) issuer: Option<&'a str>,
    /// Where it asked the person.
    pub(super) authorize_url: &'a Url,
}

impl Expected<'_> {
    fn judge(&self, query: &str) -> Result<Callback, LoginError> {
        let state = only(query, "state")?.ok_or(LoginError::Foreign("it has no `state`"))?;
        if !bool::from(state.as_bytes().ct_eq(self.state.secret().as_bytes())) {
            return Err(LoginError::Foreign("its `state` is another"));
        }
        if let Some(issuer) = only(query, "iss")?
            && !self.is_issuer(&issuer)
        {
            return Err(LoginError::Foreign("it comes from another issuer"));
        }
        if let Some(error) = only(query, "error")? {
            let words = match only(query, "error_description")? {
                Some(description) => format!("{error}: {description}"),
                None => error,
            };
            return Err(LoginError::refused(self.host, &words));
        }
        let code = only(query, "code")?.filter(|code| !code.is_empty());
        code.map(|code| Callback { code })
            .ok_or(LoginError::Foreign("it has no `code`"))
    }

    fn is_issuer(&self, issuer: &str) -> bool {
        match self.issuer {
            Some(expected) => issuer == expected,
            None => Url::parse(issuer).is_ok_and(|issuer| issuer.origin() == self.authorize_url.origin()),
        }
    }
}

/// The parameter `name`, which may stand there once.
fn only(query: &str, name: &str) -> Result<Option<String>, LoginError> {
    let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
    let first = values.next().map(|(_, value)| value.into_owned());
    match values.next() {
        None => Ok(first),
        Some(_) => Err(LoginError::Foreign("it says something twice")),
    }
}
