//! A model server behind TLS, with a certificate authority of its own: what stands between the daemon and a provider on the network.

use crate::raw_server::chat_body;
use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

/// The versions of HTTP a server offers in its handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offers {
    /// Both, HTTP/2 first.
    Http2,
    /// HTTP/1.1 alone.
    Http1,
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsRequest {
    /// The version of HTTP, as the handshake settled it.
    pub http2: bool,
    /// The value of `authorization`.
    pub authorization: String,
}

/// A running server; it ends with the test's runtime.
#[derive(Debug)]
pub struct TlsServer {
    address: SocketAddr,
    authority: String,
    requests: Arc<Mutex<Vec<TlsRequest>>>,
}

impl TlsServer {
    /// Starts on a free port of the loopback address, as `localhost`. Every request gets a reply of Chat Completions that says `text`.
    ///
    /// # Errors
    /// When the port or a certificate cannot be had.
    pub async fn start(offers: Offers, text: &str) -> anyhow::Result<Self> {
        let (config, authority) = certified(offers)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, requests) = (listener.local_addr()?, Arc::new(Mutex::new(Vec::new())));
        let (seen, body) = (Arc::clone(&requests), chat_body(text));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen, body) = (acceptor.clone(), Arc::clone(&seen), body.clone());
                tokio::spawn(async move { serve(stream, acceptor, &seen, &body).await });
            }
        });
        Ok(Self {
            address,
            authority,
            requests,
        })
    }

    /// `https://localhost:PORT`.
    pub fn origin(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// The authority's certificate, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<TlsRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The server's side of TLS, and the authority that vouches for it.
fn certified(offers: Offers) -> anyhow::Result<(ServerConfig, String)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let own_key = KeyPair::generate()?;
    let own = CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&own_key, &issuer)?;
    let private = PrivateKeyDer::try_from(own_key.serialize_der()).map_err(|error| anyhow::anyhow!(error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], private)?;
    config.alpn_protocols = match offers {
        Offers::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Offers::Http1 => vec![b"http/1.1".to_vec()],
    };
    Ok((config, authority))
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    seen: &Mutex<Vec<TlsRequest>>,
    body: &str,
) -> anyhow::Result<()> {
    let stream = acceptor.accept(stream).await?;
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        return over_http2(stream, seen, body).await;
    }
    over_http1(stream, seen, body).await
}

fn note(seen: &Mutex<Vec<TlsRequest>>, http2: bool, authorization: &str) {
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(TlsRequest {
        http2,
        authorization: authorization.to_owned(),
    });
}

async fn over_http2(stream: TlsStream<TcpStream>, seen: &Mutex<Vec<TlsRequest>>, body: &str) -> anyhow::Result<()> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(accepted) = connection.accept().await {
        let (request, mut respond) = accepted?;
        let authorization = request.headers().get("authorization");
        let authorization = authorization.and_then(|value| value.to_str().ok()).unwrap_or_default();
        // The daemon makes a connection before it has anything to say.
        if request.method() == "POST" {
            note(seen, true, authorization);
        }
        let response = axum::http::Response::builder().header("content-type", "text/event-stream");
        let mut out = respond.send_response(response.body(())?, false)?;
        out.send_data(body.to_owned().into(), true)?;
    }
    Ok(())
}

async fn over_http1(mut stream: TlsStream<TcpStream>, seen: &Mutex<Vec<TlsRequest>>, body: &str) -> anyhow::Result<()> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
    loop {
        let count = stream.read(&mut chunk).await?;
        bytes.extend_from_slice(
            chunk
                .get(..count)
                .filter(|read| !read.is_empty())
                .context("the client left")?,
        );
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, sent)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let field = |name: &str| {
            head.lines()
                .filter_map(|line| line.split_once(": "))
                .find_map(|(known, value)| known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned()))
        };
        let length = field("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        if sent.len() < length {
            continue;
        }
        if head.starts_with("POST ") {
            note(seen, false, &field("authorization").unwrap_or_default());
        }
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        stream.flush().await?;
        bytes.clear();
    }
}
