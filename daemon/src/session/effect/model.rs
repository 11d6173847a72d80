//! One model call: choose the model, read the history, build the request, stream the reply, and let each tool look at the call it is
//! asked for.

use super::instructions::find;
use super::said::{self, Growing};
use crate::auth::Redactor;
use crate::context::assemble::{Audience, ModelTerms, assemble};
use crate::context::history::History;
use crate::context::instructions::Instructions;
use crate::context::prompt::Surroundings;
use crate::context::tokens;
use crate::log::{EventLog, SessionKey};
use crate::provider::{ItemKind, ModelError, ModelReply, Provider, ReplyItem, Sink, ToolCall, ToolSpec};
use crate::session::input::{Failed, Inspected, Item, Piece, Replied, RequestedCall, Retry, Room};
use crate::session::live::Feed;
use crate::session::place::LazyPlace;
use crate::session::wanted::ModelKey;
use crate::tool::Tool;
use async_trait::async_trait;
use protocol::event::{ItemStatus, ItemType, ModelRef, Reason};
use protocol::frame::{OpenType, Stream};
use protocol::{Event, ItemId, Mode, SessionId, Time, Usage};
use serde_json::Value;
use std::sync::Arc;

/// The models a session can be answered by.
#[async_trait]
pub(crate) trait Models: Send + Sync {
    /// What is to be said before content goes to a model that nobody named; `None` when a person named it.
    fn announce(&self, profile: Option<&str>) -> Option<String>;

    /// The model of `profile`, or the one chosen when none is named, for a turn in `mode`.
    async fn choose(&self, profile: Option<&str>, mode: Mode) -> Result<Chosen, ModelError>;
}

/// A model to call.
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) profile: String,
    pub(crate) terms: ModelTerms,
    /// Tokens of context to stay below.
    pub(crate) budget: u64,
    /// What a person should know about the budget, if it rests on a guess.
    pub(crate) doubt: Option<String>,
    /// What a call of this usage costs, in US dollars.
    pub(crate) cost: Box<dyn Fn(Usage) -> Option<f64> + Send + Sync>,
}

/// All a model call needs.
pub(crate) struct ModelCall {
    pub(crate) key: ModelKey,
    pub(crate) profile: Option<String>,
    /// The mode in force when the call was wanted.
    pub(crate) mode: Mode,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) log: EventLog,
    pub(crate) session: SessionKey,
    pub(crate) session_id: SessionId,
    pub(crate) history: History,
    /// As an earlier step of the turn found them: within a turn they stay, so that its prompt does.
    pub(crate) instructions: Option<Instructions>,
    pub(crate) tools: Arc<[Arc<dyn Tool>]>,
    pub(crate) place: LazyPlace,
    pub(crate) cwd: String,
    pub(crate) root: String,
    pub(crate) added_roots: Vec<String>,
    pub(crate) turn_started_at: Time,
    pub(crate) audience: Audience,
    pub(crate) feed: Arc<Feed>,
    pub(crate) redactor: Redactor,
}

/// How it ended, with the history as far as it was read.
pub(crate) struct ModelEnd {
    pub(crate) result: Result<Replied, Failed>,
    pub(crate) history: History,
    pub(crate) instructions: Option<Instructions>,
}

impl ModelCall {
    /// Makes the call.
    pub(crate) async fn run(mut self) -> ModelEnd {
        let result = match self.reply().await {
            Ok(replied) => Ok(replied),
            Err(error) => Err(failed(self.key.clone(), error, &self.redactor)),
        };
        ModelEnd {
            result,
            history: self.history,
            instructions: self.instructions,
        }
    }

    async fn reply(&mut self) -> Result<Replied, ModelError> {
        let chosen = self.models.choose(self.profile.as_deref(), self.mode).await?;
        self.read_history().await?;
        let instructions = self.instructions().await;
        let origin = chosen.provider.origin();
        let specs = self.tools.iter().map(|tool| tool_spec(tool.as_ref())).collect();
        let surroundings = Surroundings {
            session: self.session_id.as_str(),
            cwd: &self.cwd,
            root: &self.root,
            added_roots: &self.added_roots,
            at: self.turn_started_at,
        };
        let (request, manifest) = assemble(
            &self.history,
            surroundings,
            instructions.document.as_ref(),
            specs,
            chosen.terms.clone(),
            &origin,
            self.audience,
        );
        let mut sink = FeedSink {
            feed: Arc::clone(&self.feed),
            key: self.key.clone(),
            growing: Growing::new(&self.redactor),
        };
        let reply = chosen.provider.call(&request, &mut sink).await?;
        sink.finish();
        let ModelReply {
            items,
            stop,
            usage,
            model,
            ..
        } = reply;
        let items: Vec<ReplyItem> = items
            .into_iter()
            .map(|item| said::clean(item, &self.redactor))
            .collect();
        let model = ModelRef {
            profile: chosen.profile.clone(),
            model: model.map_or_else(|| request.model.clone(), |model| self.redactor.clean_text(model)),
            origin: origin.0,
        };
        let room = Room {
            budget: chosen.budget,
            request: manifest.tokens,
            reply: tokens::of_reply(&items),
            doubt: chosen.doubt,
        };
        let mut pieces = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            pieces.push(self.piece(index, item).await);
        }
        let cost = usage.and_then(|usage| (chosen.cost)(usage));
        Ok(Replied {
            key: self.key.clone(),
            pieces,
            stop,
            model,
            usage,
            cost,
            manifest,
            room,
            remark: instructions.notice,
        })
    }

    /// What the project says, read once in a turn.
    async fn instructions(&mut self) -> Instructions {
        if let Some(known) = &self.instructions {
            return known.clone();
        }
        let found = match self.place.get().await {
            Ok(place) => find(&place.target, &self.redactor).await,
            // Each call says that the root is gone.
            Err(_) => Instructions::default(),
        };
        self.instructions.insert(found).clone()
    }

    /// Brings the history up to the `step.started` that asked for this call.
    async fn read_history(&mut self) -> Result<(), ModelError> {
        let to = self.key.seq;
        while self.history.through < to {
            let rows = self
                .log
                .read(self.session, self.history.through.0, crate::log::PAGE_ROWS)
                .await;
            let rows = rows.map_err(|error| ModelError::new(crate::provider::Class::Server, error.to_string()))?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let private = row
                    .private
                    .as_deref()
                    .and_then(|bytes| serde_json::from_slice(bytes).ok());
                let seq = protocol::Seq(row.seq);
                match Event::parse(&row.kind, &row.body) {
                    Ok(Some(event)) => self.history.take(seq, event, private),
                    _ => self.history.through = seq,
                }
            }
        }
        Ok(())
    }

    async fn piece(&self, index: usize, item: ReplyItem) -> Piece {
        let whole = |item_type, text, private| Piece::Item {
            index,
            item: Item {
                item_type,
                text,
                status: ItemStatus::Whole,
                private,
            },
        };
        match item {
            ReplyItem::Text { text, private } => whole(ItemType::Text, text, private),
            ReplyItem::Reasoning { text, private } => whole(ItemType::Reasoning, text, private),
            ReplyItem::Refusal { text } => whole(ItemType::Refusal, text, None),
            ReplyItem::Opaque { private } => whole(ItemType::Opaque, String::new(), Some(private)),
            ReplyItem::Call(call) => Piece::Call {
                index,
                call: Box::new(self.inspect(call).await),
            },
        }
    }

    async fn inspect(&self, call: ToolCall) -> RequestedCall {
        let ToolCall {
            provider_call_id,
            name,
            arguments,
            private,
        } = call;
        let (arguments, inspected) = match arguments {
            Err(bad) => (Value::String(bad.raw), Err(bad.message)),
            Ok(arguments) => {
                let arguments = Value::Object(arguments);
                let inspected = self.look(&name, &arguments).await;
                (arguments, inspected)
            }
        };
        RequestedCall {
            tool: name,
            provider_call_id,
            arguments,
            private,
            inspected,
        }
    }

    async fn look(&self, name: &str, arguments: &Value) -> Result<Inspected, String> {
        let Some(tool) = self.tools.iter().find(|tool| tool.spec().name == name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name).collect();
            return Err(format!("there is no tool `{name}`; there are: {}", names.join(", ")));
        };
        let place = self.place.get().await?;
        let inspected = tool
            .inspect(arguments, &place)
            .await
            .map_err(|error| self.redactor.clean(&error.to_string()).into_owned())?;
        Ok(Inspected::recorded(inspected, &self.redactor))
    }
}

fn tool_spec(tool: &dyn Tool) -> ToolSpec {
    let spec = tool.spec();
    ToolSpec {
        name: spec.name.to_owned(),
        description: spec.description.clone(),
        schema: spec.schema.clone(),
    }
}

fn failed(key: ModelKey, error: ModelError, redactor: &Redactor) -> Failed {
    let retry = if error.class.retryable() {
        Retry::After(error.retry_after)
    } else {
        Retry::Never
    };
    let kind = error.class.as_str().to_owned();
    Failed {
        key,
        error: Reason {
            kind,
            message: redactor.clean_text(error.message),
            hint: error.hint.map(|hint| redactor.clean_text(hint)),
        },
        retry,
        usage: error.usage,
    }
}

/// Shows the reply in the feed while it comes.
struct FeedSink {
    feed: Arc<Feed>,
    key: ModelKey,
    growing: Growing,
}

impl FeedSink {
    /// Shows what was held back, now that the reply is whole.
    fn finish(self) {
        for (index, rest) in self.growing.finish() {
            show(&self.feed, index, &rest);
        }
    }
}

fn show(feed: &Feed, index: usize, text: &str) {
    if !text.is_empty() {
        feed.push(index, text);
    }
}

impl Sink for FeedSink {
    fn open(&mut self, index: usize, kind: ItemKind) {
        let (item_type, stream, tool) = match kind {
            ItemKind::Text => (OpenType::Text, Stream::Text, None),
            ItemKind::Reasoning => (OpenType::Reasoning, Stream::Text, None),
            ItemKind::Refusal => (OpenType::Refusal, Stream::Text, None),
            ItemKind::Opaque => (OpenType::Opaque, Stream::Text, None),
            ItemKind::Call { name, .. } => (OpenType::Call, Stream::Arguments, Some(self.growing.clean(name))),
        };
        self.feed
            .open(ItemId::reply(self.key.seq, index), index, item_type, stream, tool);
    }

    fn push(&mut self, index: usize, text: &str) {
        let text = self.growing.push(index, text);
        show(&self.feed, index, &text);
    }
}
