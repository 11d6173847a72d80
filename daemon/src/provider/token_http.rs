//! The connection to the endpoints of a login, through the same clients as model calls: no redirect is followed, waiting and reading are
//! bounded, and no error names more of an address than its host.

use std::time::Duration;

use async_trait::async_trait;
use oauth2::{HttpRequest, HttpResponse, http};
use reqwest::StatusCode;
use tokio::time::timeout;

use super::clients::{Http, Route};
use super::http::chain;
use crate::auth::login::{HttpFailed, TokenHttp};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(30);

/// How long an answer may take, from the request to its last byte.
const WHOLE: Duration = Duration::from_secs(60);

/// Bytes of an answer; tokens have a few thousand.
const ANSWER_BYTES: usize = 256 * 1024;

#[async_trait]
impl TokenHttp for Http {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailed> {
        let request = reqwest::Request::try_from(request).map_err(|_| failed("its address is none"))?;
        let client = self.client(CONNECT, Route::to(request.url()));
        let client = client.map_err(|error| HttpFailed(error.message))?;
        let answered = timeout(WHOLE, exchange(client, request)).await;
        answered.unwrap_or_else(|_| Err(failed("it did not answer within a minute")))
    }
}

async fn exchange(client: reqwest::Client, request: reqwest::Request) -> Result<HttpResponse, HttpFailed> {
    let told = |error: reqwest::Error| failed(chain(&error.without_url()));
    let mut response = client.execute(request).await.map_err(told)?;
    let status = response.status();
    // A server with trouble of its own has said nothing about tokens, whatever it wrote.
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(failed(format!("it answered HTTP status {}", status.as_u16())));
    }
    let headers = response.headers().clone();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(told)? {
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(failed("its answer is too long"));
        }
        body.extend_from_slice(&chunk);
    }
    let mut answer = http::Response::new(body);
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

fn failed(reason: impl Into<String>) -> HttpFailed {
    HttpFailed(reason.into())
}
