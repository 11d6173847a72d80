//! From history, prompt and tools to the request and the manifest that says what it was made from. Pure.

use super::history::History;
use super::instructions::Document;
use super::prompt::{Surroundings, system_prompt, whole};
use super::tokens::of_text;
use crate::provider::{Message, ModelRequest, Origin, ReplyItem, ToolSpec};
use protocol::event::{Manifest, PromptSource};
use protocol::{Content, Seq};
use sha2::{Digest, Sha256};

/// Name of the built-in prompt in manifests.
const BUILT_IN: &str = "built-in";
/// Characters of a cache key: OpenAI takes at most 64, and half as many do not meet by chance.
const CACHE_KEY_CHARACTERS: usize = 32;

/// What a request takes from the chosen model.
#[derive(Debug, Clone)]
pub(crate) struct ModelTerms {
    pub(crate) model: String,
    pub(crate) max_output_tokens: u32,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) effort: Option<crate::provider::Effort>,
}

/// Whether a person watches the answer come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Person,
    Nobody,
}

/// Builds the request and its manifest.
pub(crate) fn assemble(
    history: &History,
    surroundings: Surroundings<'_>,
    documents: &[Document],
    tools: Vec<ToolSpec>,
    terms: ModelTerms,
    origin: &Origin,
    audience: Audience,
) -> (ModelRequest, Manifest) {
    let built_in = system_prompt(surroundings);
    let system = whole(&built_in, documents);
    let mut manifest = Manifest {
        history: vec![(Seq(1), history.through)],
        system: hash_of(&system),
        sources: sources(&built_in, documents),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        bytes: system.len() as u64 + history.messages.iter().map(message_bytes).sum::<u64>(),
        tokens: 0,
        private_dropped: history
            .messages
            .iter()
            .map(|message| foreign_private(message, origin))
            .sum(),
    };
    let request = ModelRequest {
        model: terms.model,
        system,
        messages: history.messages.clone(),
        tools,
        max_output_tokens: terms.max_output_tokens,
        temperature: terms.temperature,
        top_p: terms.top_p,
        effort: terms.effort,
        cache_key: Some(cache_key(surroundings.session, origin)),
        interactive: audience == Audience::Person,
    };
    manifest.tokens = super::tokens::of_request(&request);
    (request, manifest)
}

/// What the system prompt is made of, in its order.
fn sources(built_in: &str, documents: &[Document]) -> Vec<PromptSource> {
    let own = PromptSource {
        source: BUILT_IN.to_owned(),
        hash: hash_of(built_in),
        tokens: of_text(built_in),
    };
    let others = documents.iter().map(|document| PromptSource {
        source: document.source.clone(),
        hash: document.hash.clone(),
        tokens: of_text(&document.text),
    });
    std::iter::once(own).chain(others).collect()
}

fn hash_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The same for all calls of a session to one provider. Neither it nor two keys together tell the session's id or what two providers
/// have in common.
fn cache_key(session: &str, origin: &Origin) -> String {
    let mut digest = Sha256::new();
    for part in ["agentd prompt cache", session, &origin.0] {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let mut key = hex(&digest.finalize());
    key.truncate(CACHE_KEY_CHARACTERS);
    key
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn message_bytes(message: &Message) -> u64 {
    let content = |content: &[Content]| content.iter().map(content_bytes).sum::<u64>();
    match message {
        Message::User { content: pieces } => content(pieces),
        Message::Results { results } => results.iter().map(|result| content(&result.output)).sum(),
        Message::Assistant { items, .. } => items.iter().map(item_bytes).sum(),
    }
}

fn content_bytes(content: &Content) -> u64 {
    match content {
        Content::Text { text } => text.len() as u64,
        Content::Image { data, .. } => data.len() as u64,
    }
}

pub(super) fn item_bytes(item: &ReplyItem) -> u64 {
    match item {
        ReplyItem::Text { text, .. } | ReplyItem::Reasoning { text, .. } | ReplyItem::Refusal { text } => {
            text.len() as u64
        }
        ReplyItem::Opaque { .. } => 0,
        ReplyItem::Call(call) => call.arguments.as_ref().map_or(0, |arguments| {
            serde_json::to_string(arguments).map_or(0, |text| text.len() as u64)
        }),
    }
}

/// Private parts another provider made, which this one does not get.
fn foreign_private(message: &Message, own: &Origin) -> u32 {
    let Message::Assistant { origin, items } = message else {
        return 0;
    };
    if origin == own {
        return 0;
    }
    let private = items.iter().filter(|item| match item {
        ReplyItem::Text { private, .. } | ReplyItem::Reasoning { private, .. } => private.is_some(),
        ReplyItem::Call(call) => call.private.is_some(),
        ReplyItem::Opaque { .. } => true,
        ReplyItem::Refusal { .. } => false,
    });
    u32::try_from(private.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_its_cache_key_with_a_provider_and_shares_it_with_no_other() {
        let (one, other) = (
            Origin("w https://one.example".to_owned()),
            Origin("w https://two.example".to_owned()),
        );
        let key = cache_key("0198-session", &one);
        assert_eq!(key, cache_key("0198-session", &one));
        assert_ne!(key, cache_key("0198-session", &other));
        assert_ne!(key, cache_key("0199-session", &one));
        assert!(key.len() == CACHE_KEY_CHARACTERS && !key.contains("0198"), "{key}");
    }
}
