//! OpenAI Responses: `POST {base_url}/responses` with `stream: true`, stateless (`store: false`).
//!
//! Follows the vendor's API reference and what recorded streams of OpenAI, Azure, xAI, DeepSeek, LM Studio and others show.

mod items;
pub(super) mod request;
mod slot;
pub(super) mod stream;
mod wire;

use async_trait::async_trait;

use super::http::{Endpoint, KeyHeader};
use super::{ModelError, ModelReply, ModelRequest, Origin, Provider, Sink};

/// A provider that speaks Responses.
pub(super) struct OpenaiResponses {
    endpoint: Endpoint,
}

impl OpenaiResponses {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

#[async_trait]
impl Provider for OpenaiResponses {
    fn origin(&self) -> Origin {
        self.endpoint.origin()
    }

    async fn call(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<ModelReply, ModelError> {
        let dialect = request::Dialect::of(self.endpoint.host());
        let body = request::body(request, &self.origin(), dialect);
        let stream = Box::new(stream::Stream::default());
        let bytes = body.to_string().into_bytes();
        self.endpoint
            .exchange(KeyHeader::Bearer, &[], bytes, stream, sink)
            .await
    }
}
