//! The one way a request leaves the daemon: one endpoint per profile, one exchange per model call.
//!
//! No redirect is followed, so a key reaches the profile's own origin and nothing else. Waiting is bounded for the
//! connection, the first byte and every byte after it; reading is bounded for events, replies and error bodies. Every
//! message that leaves is redacted of the profile's secrets.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{Instant, timeout, timeout_at};

use super::address::{address, extra_headers, refused};
use super::classify::{Answer, classify};
use super::clients::{Http, Route};
use super::decoded::{Decoded, Decoder, Progress};
use super::error::{Class, ModelError};
use super::{ModelReply, Origin, Sink, sse};
use crate::auth::Redactor;
use crate::config::profile::{Profile, Timeouts};

/// Most of an error body that is kept.
const ERROR_BODY_LIMIT: usize = 64 * 1024;

/// How long the connection is kept, after the terminal marker, for the body's own end, which lets it be used again.
const DRAIN: Duration = Duration::from_millis(50);

/// How long to wait for more once the reply is whole: some servers neither say that they are done nor close.
const AFTER_WHOLE: Duration = Duration::from_secs(10);

/// How a wire sends the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyHeader {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
}

/// Where one profile's requests go, with everything that goes along with them.
pub(super) struct Endpoint {
    http: Http,
    url: Url,
    key: Option<SecretString>,
    headers: HeaderMap,
    timeouts: Timeouts,
    redactor: Redactor,
    wire: &'static str,
}

impl Endpoint {
    /// The endpoint of `profile` at its base URL plus `path`.
    pub(super) fn new(
        profile: &Profile,
        key: Option<SecretString>,
        http: &Http,
        path: &str,
    ) -> Result<Self, ModelError> {
        let url = address(profile, path)?;
        let header_values = profile.headers.values().map(|value| value.expose_secret());
        let userinfo = [url.username(), url.password().unwrap_or_default()];
        let secrets = key
            .iter()
            .map(|key| key.expose_secret())
            .chain(header_values)
            .chain(userinfo);
        let redactor = Redactor::default();
        redactor.learn(&profile.name, secrets);
        Ok(Self {
            http: http.clone(),
            redactor,
            headers: extra_headers(profile)?,
            url,
            key,
            timeouts: profile.timeouts,
            wire: profile.wire.as_str(),
        })
    }

    /// The wire and the origin, without path and userinfo.
    pub(super) fn origin(&self) -> Origin {
        Origin(format!("{} {}", self.wire, self.url.origin().ascii_serialization()))
    }

    /// The host requests go to.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Sends `body`, lets `decoder` read the stream that comes back and makes the reply of it.
    ///
    /// # Errors
    /// Every failure up to the end of the body; the texts are redacted.
    pub(super) async fn exchange(
        &self,
        key_header: KeyHeader,
        wire_headers: &[(HeaderName, &'static str)],
        body: Vec<u8>,
        decoder: Box<dyn Decoder>,
        sink: &mut dyn Sink,
    ) -> Result<ModelReply, ModelError> {
        let headers = self.request_headers(key_header, wire_headers)?;
        let decoded = self.attempt(headers, body, decoder, sink).await;
        let reply = decoded.and_then(|mut decoded| {
            // Before the message is cut to its length, which could cut a secret in two.
            if let Some(error) = &mut decoded.error {
                error.clean(&|said| self.redactor.clean(said).into_owned());
            }
            decoded.into_reply(sink)
        });
        reply.map_err(|error| self.redacted(error))
    }

    /// The body of a `GET`, at most `bytes_limit` long and within `limit`.
    ///
    /// # Errors
    /// As for `exchange`; a longer body is `ReplyTooLarge`.
    pub(super) async fn fetch(
        &self,
        key_header: KeyHeader,
        wire_headers: &[(HeaderName, &'static str)],
        query: Option<&str>,
        bytes_limit: usize,
        limit: Duration,
    ) -> Result<Vec<u8>, ModelError> {
        let mut headers = self.request_headers(key_header, wire_headers)?;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut url = self.url.clone();
        if url.query().is_none() {
            url.set_query(query);
        }
        let client = self.http.client(self.timeouts.connect, Route::to(&self.url))?;
        let deadline = Instant::now() + limit;
        let got = async {
            let mut response = match timeout_at(deadline, client.get(url).headers(headers).send()).await {
                Ok(answered) => answered.map_err(|error| self.unreachable(error))?,
                Err(_) => return Err(self.silent(limit)),
            };
            if response.status() != StatusCode::OK {
                return Err(self.failure(response, deadline).await);
            }
            let mut body = Vec::new();
            loop {
                let chunk = timeout_at(deadline, response.chunk())
                    .await
                    .map_err(|_| self.silent(limit))?;
                let Some(chunk) = chunk.map_err(cut)? else {
                    return Ok(body);
                };
                body.extend_from_slice(&chunk);
                if body.len() > bytes_limit {
                    return Err(ModelError::new(
                        Class::ReplyTooLarge,
                        format!("the answer is longer than {bytes_limit} bytes"),
                    ));
                }
            }
        };
        got.await.map_err(|error| self.redacted(error))
    }

    /// `error` without the profile's secrets.
    fn redacted(&self, error: ModelError) -> ModelError {
        ModelError {
            message: self.redactor.clean(&error.message).into_owned(),
            hint: error.hint.map(|hint| self.redactor.clean(&hint).into_owned()),
            ..error
        }
    }

    fn request_headers(
        &self,
        key_header: KeyHeader,
        wire_headers: &[(HeaderName, &'static str)],
    ) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        for (name, value) in wire_headers {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(key) = &self.key {
            let (name, text) = match key_header {
                KeyHeader::Bearer => (
                    reqwest::header::AUTHORIZATION,
                    format!("Bearer {}", key.expose_secret()),
                ),
                KeyHeader::XApiKey => (HeaderName::from_static("x-api-key"), key.expose_secret().to_owned()),
            };
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| refused("the key of this profile holds characters no header may hold"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // The profile's own headers win: a gateway may want another form of the key or another version.
        headers.extend(self.headers.clone());
        Ok(headers)
    }

    async fn attempt(
        &self,
        headers: HeaderMap,
        body: Vec<u8>,
        decoder: Box<dyn Decoder>,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, ModelError> {
        let client = self.http.client(self.timeouts.connect, Route::to(&self.url))?;
        let deadline = Instant::now() + self.timeouts.first_byte;
        let request = client.post(self.url.clone()).headers(headers).body(body).send();
        let response = match timeout_at(deadline, request).await {
            Ok(answered) => answered.map_err(|error| self.unreachable(error))?,
            Err(_) => return Err(self.silent(self.timeouts.first_byte)),
        };
        if response.status() != StatusCode::OK || !is_stream(&response) {
            return Err(self.failure(response, deadline).await);
        }
        self.read(response, deadline, decoder, sink).await
    }

    /// Reads the stream to its end. `deadline` is the first byte's.
    async fn read(
        &self,
        mut response: Response,
        mut deadline: Instant,
        mut decoder: Box<dyn Decoder>,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, ModelError> {
        let mut parser = sse::Parser::default();
        let mut waited = self.timeouts.first_byte;
        while decoder.progress() != Progress::Ended {
            let chunk = match timeout_at(deadline, response.chunk()).await {
                Ok(Ok(chunk)) => chunk,
                // The reply is whole; only its figures, if any, are missing.
                _ if decoder.progress() == Progress::Whole => return Ok(decoder.finish()),
                Ok(Err(error)) => return Err(cut(error)),
                Err(_) => return Err(self.silent(waited)),
            };
            match &chunk {
                Some(bytes) => parser.push(bytes),
                None => parser.end(),
            }
            feed(&mut parser, decoder.as_mut(), sink)?;
            if chunk.is_none() {
                return Ok(decoder.finish());
            }
            waited = match decoder.progress() {
                Progress::Whole => AFTER_WHOLE.min(self.timeouts.idle),
                Progress::Running | Progress::Ended => self.timeouts.idle,
            };
            deadline = Instant::now() + waited;
        }
        // What may still come is nothing of the reply, and nobody waits for it. A connection cut here costs only the next handshake.
        tokio::spawn(timeout(DRAIN, drain(response)));
        Ok(decoder.finish())
    }

    /// What an answer that is no stream means.
    async fn failure(&self, mut response: Response, deadline: Instant) -> ModelError {
        let mut body = Vec::new();
        // A body that stops in the middle still says what it has said.
        while let Ok(Ok(Some(chunk))) = timeout_at(deadline, response.chunk()).await {
            let room = ERROR_BODY_LIMIT - body.len();
            body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if body.len() >= ERROR_BODY_LIMIT {
                break;
            }
        }
        let status = response.status();
        if status.is_redirection() {
            let message = format!(
                "the provider answered {}: a redirect, which is not followed",
                status.as_u16()
            );
            return ModelError::new(Class::BadRequest, message).with_hint("set base_url to the address it leads to");
        }
        let text = String::from_utf8_lossy(&body);
        let body = self.redactor.clean(&text);
        let answer = Answer {
            status: status.as_u16(),
            headers: response.headers(),
            body: body.as_bytes(),
        };
        let error = classify(&answer, Timestamp::now());
        if status.is_success() {
            return error.with_hint("the provider did not answer with an event stream; check base_url and wire");
        }
        error
    }

    /// The URL is left out of the words: its path or query may hold a secret.
    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let class = if error.is_timeout() && !error.is_connect() {
            Class::Timeout
        } else {
            Class::Connect
        };
        let words = chain(&error.without_url());
        let origin = self.url.origin().ascii_serialization();
        ModelError::new(class, format!("{origin} could not be reached: {words}"))
    }

    fn silent(&self, waited: Duration) -> ModelError {
        let host = self.host();
        ModelError::new(
            Class::Timeout,
            format!("{host} sent nothing for {} s", waited.as_secs()),
        )
    }
}

/// Lets `decoder` read every whole event `parser` has.
fn feed(parser: &mut sse::Parser, decoder: &mut dyn Decoder, sink: &mut dyn Sink) -> Result<(), ModelError> {
    loop {
        match parser.next_event() {
            Ok(Some(event)) => decoder.event(&event, sink).map_err(|error| too_large(&error))?,
            Ok(None) => return Ok(()),
            Err(error) => return Err(too_large(&error)),
        }
    }
}

async fn drain(mut response: Response) {
    while let Ok(Some(_)) = response.chunk().await {}
}

/// A server that sets no content type, or an odd one, may still stream; JSON and web pages are answers of another kind.
fn is_stream(response: &Response) -> bool {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    !(kind.starts_with("application/json") || kind.starts_with("text/html"))
}

fn too_large(error: &dyn std::error::Error) -> ModelError {
    ModelError::new(Class::ReplyTooLarge, error.to_string())
}

fn cut(error: reqwest::Error) -> ModelError {
    ModelError::new(
        Class::StreamCut,
        format!("the connection broke in mid-reply: {}", chain(&error.without_url())),
    )
}

/// An error with its causes, which hold what really happened.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}
