//! What the scripted model says: replies of text, reasoning and tool calls, how each ends, and the gates that pace them.
//!
//! A script answers requests in order, or each by how far its turn has come, or by a function of the request. The last two
//! keep no count, so a call made again after a crash gets the same answer again.

use super::seen::Seen;
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// One answer of the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// In the order the model says them.
    pub parts: Vec<Part>,
    /// What comes after the parts.
    pub end: End,
    /// Reported usage.
    pub usage: Tokens,
    /// Holds back each fragment until the test lets it through.
    #[serde(skip)]
    pub gate: Option<Gate>,
}

/// A piece of a reply, streamed in `deltas` fragments of about equal size.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// Text for the person.
    Text {
        text: String,
        #[serde(default = "one")]
        deltas: usize,
    },
    /// Thinking, signed on the wires that sign it.
    Reasoning {
        text: String,
        #[serde(default = "one")]
        deltas: usize,
    },
    /// A tool call; `arguments` is sent as its JSON text, a string as it stands, so that a test can send bad JSON.
    Call {
        name: String,
        arguments: Value,
        #[serde(default = "one")]
        deltas: usize,
    },
}

fn one() -> usize {
    1
}

/// How a reply ends.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// As the wire says: the model ended its turn, or waits for tools if it called any.
    #[default]
    Done,
    /// The reply reached the limit of output tokens.
    MaxTokens,
    /// The model refused.
    Refusal,
    /// Nothing more comes and the connection stays open.
    Stall,
    /// The body ends without the wire's terminal marker.
    Cut,
    /// The connection breaks in mid-body.
    Drop,
    /// An error event in the stream.
    Error { kind: String, message: String },
    /// Not a stream at all: an HTTP answer with this status, these headers and this body.
    Status {
        status: u16,
        #[serde(default)]
        headers: Vec<(String, String)>,
        body: String,
    },
}

/// Usage a reply reports.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tokens {
    /// Sent, the cached ones included.
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            input: 100,
            output: 10,
            cached: 0,
        }
    }
}

impl Reply {
    /// A reply of text alone, in one fragment.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().then_text(text)
    }

    /// A reply that is one tool call.
    pub fn tool(name: &str, arguments: Value) -> Self {
        Self::default().call(name, arguments)
    }

    /// An HTTP answer that is no stream.
    pub fn status(status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let body = body.into();
        Self::default().end(End::Status { status, headers, body })
    }

    /// Adds text.
    #[must_use]
    pub fn then_text(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.parts.push(Part::Text { text, deltas: 1 });
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn reasoning(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.parts.push(Part::Reasoning { text, deltas: 1 });
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn call(mut self, name: &str, arguments: Value) -> Self {
        let name = name.into();
        self.parts.push(Part::Call {
            name,
            arguments,
            deltas: 1,
        });
        self
    }

    /// Splits the last part into `count` fragments.
    #[must_use]
    pub fn deltas(mut self, count: usize) -> Self {
        match self.parts.last_mut() {
            Some(Part::Text { deltas, .. } | Part::Reasoning { deltas, .. } | Part::Call { deltas, .. }) => {
                *deltas = count
            }
            None => {}
        }
        self
    }

    /// Lets each fragment through only when `gate` does.
    #[must_use]
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Says how much it cost.
    #[must_use]
    pub fn usage(mut self, usage: Tokens) -> Self {
        self.usage = usage;
        self
    }

    /// Ends in this way.
    #[must_use]
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Then says nothing more and keeps the connection.
    #[must_use]
    pub fn stall(self) -> Self {
        self.end(End::Stall)
    }

    /// Then ends the body without the terminal marker.
    #[must_use]
    pub fn cut(self) -> Self {
        self.end(End::Cut)
    }

    /// Then reports an error in the stream.
    #[must_use]
    pub fn error_event(self, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.into(), message.into());
        self.end(End::Error { kind, message })
    }

    /// Whether it calls a tool.
    pub(super) fn calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. }))
    }
}

/// Lets fragments through one by one. Cloned handles are the same gate.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `count` more fragments through.
    pub fn release(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.close();
    }

    pub(super) async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

/// Which reply answers a request.
pub enum Script {
    /// One after the other; a request beyond the last is a fault.
    Sequence(VecDeque<Reply>),
    /// By the number of replies the running turn has had already.
    ByStep(Vec<Reply>),
    /// By a function of the request.
    By(Box<dyn Fn(&Seen) -> Reply + Send>),
}

impl Script {
    /// Replies in order of the requests.
    pub fn sequence(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::Sequence(replies.into_iter().collect())
    }

    /// Every turn gets these replies from the first on.
    pub fn by_step(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::ByStep(replies.into_iter().collect())
    }

    /// Each request gets what `choose` makes of it.
    pub fn by(choose: impl Fn(&Seen) -> Reply + Send + 'static) -> Self {
        Self::By(Box::new(choose))
    }

    pub(super) fn next(&mut self, seen: &Seen) -> Option<Reply> {
        match self {
            Self::Sequence(replies) => replies.pop_front(),
            Self::ByStep(replies) => replies.get(seen.step()).cloned(),
            Self::By(choose) => Some(choose(seen)),
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence(replies) => f.debug_tuple("Sequence").field(replies).finish(),
            Self::ByStep(replies) => f.debug_tuple("ByStep").field(replies).finish(),
            Self::By(_) => f.write_str("By(…)"),
        }
    }
}

/// A script file: `{"order": "sequence" | "by_step", "replies": […]}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptFile {
    #[serde(default)]
    pub order: Order,
    pub replies: Vec<Reply>,
}

/// How a script file's replies are chosen.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Sequence,
    #[default]
    ByStep,
}

impl From<ScriptFile> for Script {
    fn from(file: ScriptFile) -> Self {
        match file.order {
            Order::Sequence => Self::sequence(file.replies),
            Order::ByStep => Self::by_step(file.replies),
        }
    }
}

/// `text` in `count` pieces of about equal length; fewer if it has fewer characters, at least one.
pub(super) fn fragments(text: &str, count: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.max(1)).max(1);
    let pieces: Vec<String> = characters.chunks(size).map(|piece| piece.iter().collect()).collect();
    if pieces.is_empty() { vec![String::new()] } else { pieces }
}
