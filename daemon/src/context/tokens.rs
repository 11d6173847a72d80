//! How many tokens a request takes, without a tokenizer: bytes/4 and 4 for each message. What a provider reports corrects it. Pure.

use super::assemble::message_bytes;
use crate::provider::{Message, ModelRequest, ReplyItem};
use protocol::Content;

/// Bytes of text that make a token, about.
const BYTES: u64 = 4;

/// Tokens around each message.
const MESSAGE: u64 = 4;

/// Tokens of an image, whatever its size: providers scale it down to about this.
const IMAGE: u64 = 1_600;

/// Tokens of a request, estimated.
pub(crate) fn of_request(request: &ModelRequest) -> u64 {
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| (tool.name.len() + tool.description.len() + tool.schema.to_string().len()) as u64)
        .sum();
    let texts: u64 = request.messages.iter().map(text_bytes).sum();
    let images: u64 = request.messages.iter().map(images).sum();
    let bytes = request.system.len() as u64 + tools + texts;
    bytes / BYTES + MESSAGE * request.messages.len() as u64 + IMAGE * images
}

/// Tokens of a reply, estimated.
pub(crate) fn of_reply(items: &[ReplyItem]) -> u64 {
    items.iter().map(super::assemble::item_bytes).sum::<u64>() / BYTES + MESSAGE
}

fn text_bytes(message: &Message) -> u64 {
    message_bytes(message).saturating_sub(contents(message).map(image_bytes).sum())
}

fn images(message: &Message) -> u64 {
    contents(message).filter(|content| image_bytes(content) > 0).count() as u64
}

fn contents(message: &Message) -> Box<dyn Iterator<Item = &Content> + '_> {
    match message {
        Message::User { content } => Box::new(content.iter()),
        Message::Results { results } => Box::new(results.iter().flat_map(|result| &result.output)),
        Message::Assistant { .. } => Box::new(std::iter::empty()),
    }
}

fn image_bytes(content: &Content) -> u64 {
    match content {
        Content::Text { .. } => 0,
        Content::Image { data, .. } => data.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            system: "s".repeat(40),
            messages,
            tools: Vec::new(),
            max_output_tokens: 1,
            temperature: None,
            top_p: None,
            effort: None,
            cache_key: None,
            interactive: false,
        }
    }

    #[test]
    fn four_bytes_are_a_token_and_each_message_takes_four_more() {
        let said = |text: &str| Message::User {
            content: vec![Content::text(text)],
        };
        assert_eq!(of_request(&request(Vec::new())), 10);
        assert_eq!(
            of_request(&request(vec![said(&"x".repeat(400)), said("")])),
            10 + 100 + 8
        );
        assert_eq!(of_reply(&[ReplyItem::Refusal { text: "x".repeat(80) }]), 24);
    }

    #[test]
    fn an_image_counts_by_what_it_costs_and_not_by_its_bytes() {
        let image = Content::Image {
            media_type: "image/png".to_owned(),
            data: "A".repeat(1_000_000),
        };
        assert_eq!(
            of_request(&request(vec![Message::User { content: vec![image] }])),
            10 + 4 + IMAGE
        );
    }
}
