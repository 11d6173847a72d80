//! One tool call: run it, show its output, store what is too long for the log.

use crate::log::{EventLog, SessionKey};
use crate::session::input::ToolEnd;
use crate::session::live::Feed;
use crate::target::sandbox::Confinement;
use crate::tool::{Ended, GuardPlan, Outcome, OutputSink, Place, RunContext, StopSignal, Tool};
use protocol::event::{BlobRef, ToolRequested};
use protocol::frame::{OpenType, Stream};
use protocol::{CallId, ItemId};
use std::sync::Arc;

/// Longest changed arguments, in bytes, that are told to the model with the result.
const TOLD_ARGUMENTS: usize = 2_000;

/// Whose arguments a call runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arguments {
    Models,
    /// A person changed them when they allowed the call.
    Persons,
}

/// All a tool call needs.
pub(crate) struct ToolCall {
    pub(crate) requested: ToolRequested,
    pub(crate) arguments: Arguments,
    pub(crate) tool: Option<Arc<dyn Tool>>,
    pub(crate) place: Result<Place, String>,
    pub(crate) guard: GuardPlan,
    pub(crate) confinement: Confinement,
    pub(crate) stop: StopSignal,
    pub(crate) log: EventLog,
    pub(crate) session: SessionKey,
    pub(crate) feed: Arc<Feed>,
}

impl ToolCall {
    /// Runs the call to its end.
    pub(crate) async fn run(self) -> ToolEnd {
        let Self { requested, arguments, tool, place, guard, confinement, stop, log, session, feed } = self;
        let call = requested.call.clone();
        let (tool, place) = match (tool, place) {
            (Some(tool), Ok(place)) => (tool, place),
            (None, _) => return end(call, Ended::new(Outcome::NotRun, "this tool is not there any more"), None),
            (_, Err(gone)) => return end(call, Ended::new(Outcome::NotRun, gone), None),
        };
        feed.open(ItemId(call.0.clone()), 0, OpenType::Call, Stream::Output, Some(requested.tool.clone()));
        let output = Box::new(FeedOutput(feed));
        let run = RunContext { place, output, stop, call: call.0.clone(), guard, confinement };
        let mut ended = tool.run(&requested.arguments, requested.digest.as_deref().unwrap_or_default(), run).await;
        if arguments == Arguments::Persons {
            ended.output = format!("{}\n\n{}", changed(&requested.arguments), ended.output);
        }
        let blob = match ended.whole.take() {
            Some(whole) => store(&log, session, whole, ended.cut_bytes).await,
            None => None,
        };
        end(call, ended, blob)
    }
}

/// What the model is told of arguments it did not give.
fn changed(arguments: &serde_json::Value) -> String {
    let text = arguments.to_string();
    if text.len() > TOLD_ARGUMENTS {
        return "The user changed the arguments of this call before it ran.".to_owned();
    }
    format!("The user changed the arguments of this call before it ran. It ran with: {text}")
}

/// Stores a whole output. One that cannot be stored is left out: the model's part of it is in the event.
pub(super) async fn store(log: &EventLog, session: SessionKey, whole: Vec<u8>, cut: u64) -> Option<BlobRef> {
    let bytes = whole.len() as u64;
    match log.put_blob(session, whole).await {
        Ok(hash) => Some(BlobRef { hash: hash.to_string(), bytes, cut }),
        Err(error) => {
            tracing::warn!(%error, "an output was not stored whole");
            None
        }
    }
}

fn end(call: CallId, ended: Ended, blob: Option<BlobRef>) -> ToolEnd {
    ToolEnd {
        call,
        outcome: ended.outcome,
        output: ended.output,
        images: ended.images,
        blob,
        diff: ended.diff,
        exit_code: ended.exit_code,
        todo: ended.todo,
        job: ended.job,
        duration_ms: ended.duration_ms,
        files: ended.files.into_iter().collect(),
    }
}

/// Shows output as stream 0 of a feed.
pub(super) struct FeedOutput(pub(super) Arc<Feed>);

impl OutputSink for FeedOutput {
    fn push(&mut self, text: &str) {
        self.0.push(0, text);
    }
}
