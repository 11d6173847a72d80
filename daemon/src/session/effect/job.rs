//! One command in the background: go on with it to its end, show its output, store what is too long for the log.

use super::tool::{FeedOutput, store};
use crate::auth::Redactor;
use crate::log::{EventLog, SessionKey};
use crate::session::input::JobEnd;
use crate::session::live::Feed;
use crate::tool::{Ended, Jobs, Outcome, StopSignal};
use protocol::event::ToolOutcome;
use protocol::frame::{OpenType, Stream};
use protocol::{ItemId, JobId};
use std::sync::Arc;

/// All a job needs.
pub(crate) struct JobRun {
    pub(crate) job: JobId,
    pub(crate) jobs: Jobs,
    pub(crate) log: EventLog,
    pub(crate) session: SessionKey,
    pub(crate) feed: Arc<Feed>,
    pub(crate) redactor: Redactor,
}

impl JobRun {
    /// Goes on to the end, or to where `stop` asks for it.
    pub(crate) async fn run(self, mut stop: StopSignal) -> JobEnd {
        let Self {
            job,
            jobs,
            log,
            session,
            feed,
            redactor,
        } = self;
        let Some(adopted) = jobs.take(&job) else {
            return lost(job);
        };
        feed.open(
            ItemId::job(&job),
            0,
            OpenType::Call,
            Stream::Output,
            Some("bash".to_owned()),
        );
        let mut running = std::pin::pin!(adopted.until_ended(Box::new(FeedOutput::new(feed, &redactor))));
        let mut ended: Ended = loop {
            tokio::select! {
                ended = &mut running => break ended,
                Ok(()) = stop.changed() => jobs.stop(&job, *stop.borrow_and_update()),
            }
        };
        let blob = match ended.whole.take() {
            Some(whole) => store(&log, session, whole, ended.cut_bytes).await,
            None => None,
        };
        JobEnd {
            job,
            outcome: outcome(ended.outcome),
            output: ended.output,
            blob,
            produced: ended.produced,
            exit_code: ended.exit_code,
            duration_ms: ended.duration_ms,
        }
    }
}

/// The outcome of a call, as it is recorded.
pub(crate) fn outcome(outcome: Outcome) -> ToolOutcome {
    match outcome {
        Outcome::Ok => ToolOutcome::Ok,
        Outcome::Error => ToolOutcome::Error,
        Outcome::NotRun => ToolOutcome::NotRun,
        Outcome::TimedOut => ToolOutcome::TimedOut,
        Outcome::Stopped => ToolOutcome::Stopped,
    }
}

/// The end of a job that nobody has any more.
pub(crate) fn lost(job: JobId) -> JobEnd {
    let output = "Interrupted, outcome unknown: agentd ended while this ran, and ended it too.".to_owned();
    JobEnd {
        job,
        outcome: ToolOutcome::Lost,
        output,
        blob: None,
        produced: None,
        exit_code: None,
        duration_ms: 0,
    }
}
