//! Anthropic Messages: `POST /v1/messages` with `stream: true`.
//!
//! Follows the vendor's API reference, version 2023-06-01, and what recorded streams show beyond it.

pub(super) mod request;
pub(super) mod stream;
mod wire;

use async_trait::async_trait;
use reqwest::header::HeaderName;

use super::http::{Endpoint, KeyHeader};
use super::{ModelError, ModelReply, ModelRequest, Origin, Provider, Sink};

/// The version of the API this adapter speaks.
const VERSION: (HeaderName, &str) = (HeaderName::from_static("anthropic-version"), "2023-06-01");

/// A provider that speaks Anthropic Messages.
pub(super) struct AnthropicMessages {
    endpoint: Endpoint,
}

impl AnthropicMessages {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

#[async_trait]
impl Provider for AnthropicMessages {
    fn origin(&self) -> Origin {
        self.endpoint.origin()
    }

    async fn call(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<ModelReply, ModelError> {
        let body = request::body(request, &self.origin());
        let stream = Box::new(stream::Stream::default());
        let bytes = body.to_string().into_bytes();
        self.endpoint
            .exchange(KeyHeader::XApiKey, &[VERSION], bytes, stream, sink)
            .await
    }
}
