//! One tool call: run it, show its output, store what is too long for the log. Keys are taken out of all it says before it is shown,
//! stored or sent.

use crate::auth::{RedactedStream, Redactor};
use crate::log::{EventLog, SessionKey};
use crate::session::input::ToolEnd;
use crate::session::live::Feed;
use crate::target::sandbox::Confinement;
use crate::tool::{Ended, GuardPlan, Outcome, OutputSink, Place, RunContext, StopSignal, Tool};
use protocol::event::{BlobRef, Produced, ToolRequested};
use protocol::frame::{OpenType, Stream};
use protocol::{CallId, ItemId};
use std::borrow::Cow;
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
    pub(crate) redactor: Redactor,
}

impl ToolCall {
    /// Runs the call to its end.
    pub(crate) async fn run(self) -> ToolEnd {
        let Self {
            requested,
            arguments,
            tool,
            place,
            guard,
            confinement,
            stop,
            log,
            session,
            feed,
            redactor,
        } = self;
        let call = requested.call.clone();
        let (tool, place) = match (tool, place) {
            (Some(tool), Ok(place)) => (tool, place),
            (None, _) => {
                return end(
                    call,
                    Ended::new(Outcome::NotRun, "this tool is not there any more"),
                    None,
                );
            }
            (_, Err(gone)) => return end(call, Ended::new(Outcome::NotRun, gone), None),
        };
        feed.open(
            ItemId(call.0.clone()),
            0,
            OpenType::Call,
            Stream::Output,
            Some(requested.tool.clone()),
        );
        let output = Box::new(FeedOutput::new(feed, &redactor));
        let run = RunContext {
            place,
            output,
            stop,
            call: call.0.clone(),
            guard,
            confinement,
        };
        let mut ended = tool
            .run(
                &requested.arguments,
                requested.digest.as_deref().unwrap_or_default(),
                run,
            )
            .await;
        if arguments == Arguments::Persons {
            ended.preface(&format!("{}\n\n", changed(&requested.arguments)));
        }
        redact(&mut ended, &redactor);
        let blob = match ended.whole.take() {
            Some(whole) => store(&log, session, whole, ended.cut_bytes).await,
            None => None,
        };
        end(call, ended, blob)
    }
}

/// Takes keys out of all texts of an end. What ran as a command is without them already, cut or not.
fn redact(ended: &mut Ended, redactor: &Redactor) {
    let clean = |text: &mut String| {
        if let Cow::Owned(clean) = redactor.clean(text) {
            *text = clean;
        }
    };
    ended.produced = ended
        .produced
        .and_then(|produced| cleaned(&mut ended.output, produced, &clean));
    // A second time over all of it: a key may lie across the edges of what was put out.
    let before = ended.output.len();
    clean(&mut ended.output);
    ended.produced = ended.produced.filter(|_| ended.output.len() == before);
    ended.diff.as_mut().map(clean);
    if let Some(whole) = &mut ended.whole
        && let Cow::Owned(clean) = redactor.clean(&String::from_utf8_lossy(whole))
    {
        *whole = clean.into_bytes();
    }
}

/// Cleans an output in its parts, and says where what was put out stands now.
fn cleaned(output: &mut String, produced: Produced, clean: &impl Fn(&mut String)) -> Option<Produced> {
    let place = |bytes: u64| usize::try_from(bytes).ok();
    let (start, end) = (place(produced.start)?, place(produced.end)?);
    let parts = [output.get(..start)?, output.get(start..end)?, output.get(end..)?];
    let [before, mut middle, behind] = parts.map(str::to_owned).map(|mut part| {
        clean(&mut part);
        part
    });
    let whole = produced.bytes == produced.end - produced.start;
    let counted = Produced::all(&middle);
    let start = before.len() as u64;
    let now = Produced {
        lines: if whole { counted.lines } else { produced.lines },
        bytes: if whole { counted.bytes } else { produced.bytes },
        start,
        end: start + middle.len() as u64,
    };
    middle.insert_str(0, &before);
    *output = middle + &behind;
    Some(now)
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
        Ok(hash) => Some(BlobRef {
            hash: hash.to_string(),
            bytes,
            cut,
        }),
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
        produced: ended.produced,
        diff: ended.diff,
        exit_code: ended.exit_code,
        todo: ended.todo,
        job: ended.job,
        duration_ms: ended.duration_ms,
        files: ended.files.into_iter().collect(),
    }
}

/// Shows output as stream 0 of a feed.
pub(super) struct FeedOutput {
    feed: Arc<Feed>,
    redacted: RedactedStream,
}

impl FeedOutput {
    pub(super) fn new(feed: Arc<Feed>, redactor: &Redactor) -> Self {
        Self {
            feed,
            redacted: redactor.stream(),
        }
    }
}

impl OutputSink for FeedOutput {
    fn push(&mut self, text: &str) -> String {
        let text = self.redacted.push(text);
        if !text.is_empty() {
            self.feed.push(0, &text);
        }
        text
    }

    fn finish(&mut self) -> String {
        // Not shown: the recorded end has it, and a command that goes on in the background may complete a key with what comes next.
        self.redacted.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_out_is_found_after_keys_were_taken_out_around_and_in_it() {
        let clean = |text: &mut String| *text = text.replace("key", "[redacted]");
        let mut output = "It ran with: key\n\none key\ntwo\n[exit code 0]".to_owned();
        let at = Produced {
            lines: 2,
            bytes: 12,
            start: 18,
            end: 30,
        };
        let now = cleaned(&mut output, at, &clean);
        assert_eq!(output, "It ran with: [redacted]\n\none [redacted]\ntwo\n[exit code 0]");
        assert_eq!(now.and_then(|now| now.of(&output)), Some("one [redacted]\ntwo\n"));
        assert_eq!(now.map(|now| (now.lines, now.bytes)), Some((2, 19)));
        let cut = Produced {
            bytes: 900,
            lines: 70,
            ..at
        };
        let mut output = "It ran with: key\n\none key\ntwo\n[exit code 0]".to_owned();
        let now = cleaned(&mut output, cut, &clean);
        assert_eq!(
            now.map(|now| (now.lines, now.bytes)),
            Some((70, 900)),
            "the whole was counted"
        );
        let wrong = Produced { end: 4000, ..at };
        assert_eq!(cleaned(&mut output, wrong, &clean), None);
    }
}
