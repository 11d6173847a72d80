//! A request as the scripted model saw it, in one form for every wire.

use serde_json::Value;

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
}

impl Wire {
    /// Its name in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "anthropic-messages",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
        }
    }

    /// What a profile's `base_url` has after the server's address.
    pub fn base_path(self) -> &'static str {
        match self {
            Self::Messages => "",
            Self::Chat | Self::Responses => "/v1",
        }
    }
}

/// A request that kept the wire's rules.
#[derive(Debug, Clone)]
pub struct Seen {
    pub wire: Wire,
    pub model: String,
    /// The system prompt; several pieces one a line.
    pub system: String,
    /// The conversation, oldest first.
    pub said: Vec<Said>,
    /// Names of the tools offered.
    pub tools: Vec<String>,
    /// The key it was sent with.
    pub key: Option<String>,
    /// The whole body.
    pub body: Value,
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    User(String),
    Assistant { text: String, calls: Vec<Call> },
    Results(Vec<Outcome>),
}

/// A tool call that is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// A tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub id: String,
    pub output: String,
}

impl Seen {
    /// How many replies the turn has had: those after the person's last words.
    pub fn step(&self) -> usize {
        let turn = self.said.iter().rev().take_while(|said| !matches!(said, Said::User(_)));
        turn.filter(|said| matches!(said, Said::Assistant { .. })).count()
    }

    /// The person's last words.
    pub fn last_text(&self) -> &str {
        let texts = self.said.iter().rev().filter_map(|said| match said {
            Said::User(text) => Some(text.as_str()),
            _ => None,
        });
        texts.into_iter().next().unwrap_or_default()
    }

    /// Everything the person said, oldest first.
    pub fn user_texts(&self) -> Vec<&str> {
        let texts = self.said.iter().filter_map(|said| match said {
            Said::User(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Outputs of all tool results, oldest first.
    pub fn outputs(&self) -> Vec<&str> {
        let results = self.said.iter().filter_map(|said| match said {
            Said::Results(results) => Some(results),
            _ => None,
        });
        results.flatten().map(|result| result.output.as_str()).collect()
    }
}
