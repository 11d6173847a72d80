//! OpenAI Chat Completions: `POST {base_url}/chat/completions` with `stream: true`.
//!
//! The vendor's API reference is the core; most servers that speak it are others, so the decoder takes every deviation that
//! recorded streams show, and the request leaves out what only some of them accept.

mod reasoning;
pub(super) mod request;
pub(super) mod stream;
mod usage;
mod wire;

use async_trait::async_trait;

use super::http::{Endpoint, KeyHeader};
use super::{ModelError, ModelReply, ModelRequest, Origin, Provider, Sink};

/// A provider that speaks Chat Completions.
pub(super) struct OpenaiChat {
    endpoint: Endpoint,
}

impl OpenaiChat {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

#[async_trait]
impl Provider for OpenaiChat {
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
