//! A session's commands in the background. `bash` puts a running command here; when the end of that call is recorded, the
//! session takes it out and goes on with it until it ends. What the tools `job_output` and `job_kill` see of it is here too.
//! All of it is gone with the session's actor, and the commands with it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use protocol::event::ToolOutcome;
use protocol::{CallId, JobId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::output::Kept;
use super::supervise::Watch;
use super::{Ended, Outcome, OutputSink, StopLevel, StopSignal};

/// Jobs of one session that run at once: each holds up to 2 MiB of output.
pub const MAX_JOBS: usize = 8;

/// Ended jobs whose result is kept for the model, each at most as long as a call's output.
pub const MAX_ENDED: usize = 16;

/// The jobs of a session. Cheap to clone.
#[derive(Clone)]
pub struct Jobs {
    table: Arc<Mutex<Table>>,
    /// Bumped at each end.
    ends: Arc<watch::Sender<()>>,
    /// Cancelled when the daemon is about to stop: a job would end with it.
    closing: CancellationToken,
}

#[derive(Default)]
struct Table {
    running: BTreeMap<JobId, Job>,
    /// The oldest first.
    ended: VecDeque<(JobId, JobResult)>,
}

struct Job {
    begin: Instant,
    /// Until the session takes it.
    handed: Option<Watch>,
    /// Output the model has not seen yet.
    fresh: Arc<Mutex<Kept>>,
    stop: watch::Sender<StopLevel>,
}

/// How a job ended, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    pub outcome: ToolOutcome,
    /// What the model sees.
    pub output: String,
}

/// A job as the tools see it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum JobView {
    /// It runs; its output since the last look.
    Runs {
        since: Instant,
        fresh: String,
    },
    Ended(JobResult),
    Unknown {
        known: Vec<JobId>,
    },
}

/// A job to go on with.
pub struct Adopted {
    watch: Watch,
    fresh: Arc<Mutex<Kept>>,
    stop: StopSignal,
}

/// Why no other job is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoom {
    #[error("{MAX_JOBS} jobs run already; end one with job_kill, or wait for one with job_output")]
    Full,
    #[error("the daemon is about to stop and takes no command into the background; run it with `wait: true`, or later")]
    Closing,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            table: Arc::default(),
            ends: Arc::new(watch::Sender::new(())),
            closing: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.locked().running.keys()).finish()
    }
}

impl Jobs {
    fn locked(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A table that takes no job any more once `closing` is cancelled.
    pub fn until(closing: CancellationToken) -> Self {
        Self {
            closing,
            ..Self::default()
        }
    }

    /// Whether another job may be started.
    pub(super) fn room(&self) -> Result<(), NoRoom> {
        if self.closing.is_cancelled() {
            Err(NoRoom::Closing)
        } else if self.locked().running.len() < MAX_JOBS {
            Ok(())
        } else {
            Err(NoRoom::Full)
        }
    }

    /// Takes a command that the call `call` started.
    pub(super) fn adopt(&self, call: &str, watch: Watch) -> Result<JobId, NoRoom> {
        let id = JobId::of(&CallId(call.to_owned()));
        let (stop, _) = watch::channel(StopLevel::Run);
        let job = Job {
            begin: watch.begin(),
            handed: Some(watch),
            fresh: Arc::default(),
            stop,
        };
        let mut table = self.locked();
        if table.running.len() >= MAX_JOBS {
            return Err(NoRoom::Full);
        }
        table.running.insert(id.clone(), job);
        Ok(id)
    }

    /// The job for the session to go on with; once, and `None` if this life of the daemon does not have it.
    pub fn take(&self, id: &JobId) -> Option<Adopted> {
        let mut table = self.locked();
        let job = table.running.get_mut(id)?;
        let watch = job.handed.take()?;
        Some(Adopted {
            watch,
            fresh: Arc::clone(&job.fresh),
            stop: job.stop.subscribe(),
        })
    }

    /// The end of a job is recorded.
    pub fn ended(&self, id: JobId, result: JobResult) {
        let mut table = self.locked();
        table.running.remove(&id);
        table.ended.push_back((id, result));
        if table.ended.len() > MAX_ENDED {
            table.ended.pop_front();
        }
        drop(table);
        self.ends.send_replace(());
    }

    /// Looks at a job; fresh output is shown once.
    fn look(&self, id: &JobId) -> JobView {
        let table = self.locked();
        if let Some(job) = table.running.get(id) {
            let mut fresh = std::mem::take(&mut *job.fresh.lock().unwrap_or_else(PoisonError::into_inner));
            return JobView::Runs {
                since: job.begin,
                fresh: fresh.for_model(),
            };
        }
        match table.ended.iter().rev().find(|(ended, _)| ended == id) {
            Some((_, result)) => JobView::Ended(result.clone()),
            None => {
                let ended = table.ended.iter().map(|(id, _)| id);
                JobView::Unknown {
                    known: table.running.keys().chain(ended).cloned().collect(),
                }
            }
        }
    }

    /// What the model is told of a job.
    pub(super) fn told(&self, job: &JobId) -> Ended {
        match self.look(job) {
            JobView::Runs { since, fresh } => {
                let ran = since.elapsed().as_secs_f64();
                let nothing = if fresh.is_empty() { "(nothing new)" } else { "" };
                let words = format!("{nothing}\n[job {job} runs, {ran:.1} s so far]");
                Ended::with_words(Outcome::Ok, fresh.trim_end_matches('\n').to_owned(), &words)
            }
            JobView::Ended(result) => {
                let how = protocol::wording::tool_outcome(result.outcome);
                Ended::new(
                    Outcome::Ok,
                    format!("{}\n[job {job} is over: {how}]", result.output.trim_end_matches('\n')),
                )
            }
            JobView::Unknown { known } if known.is_empty() => Ended::new(
                Outcome::Error,
                format!("`job`: there is no job {job}, and no other; bash with `wait: false` starts one"),
            ),
            JobView::Unknown { known } => {
                let known: Vec<&str> = known.iter().map(JobId::as_str).collect();
                Ended::new(
                    Outcome::Error,
                    format!("`job`: there is no job {job}; there are: {}", known.join(", ")),
                )
            }
        }
    }

    /// Asks a running job to end.
    pub fn stop(&self, id: &JobId, level: StopLevel) {
        if let Some(job) = self.locked().running.get(id) {
            job.stop.send_if_modified(|now| {
                let raised = level > *now;
                *now = level.max(*now);
                raised
            });
        }
    }

    /// Pends until the job does not run any more.
    pub(super) async fn over(&self, id: &JobId) {
        let mut ends = self.ends.subscribe();
        while self.locked().running.contains_key(id) {
            if ends.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Adopted {
    /// Goes on to the end; output goes to `sink` and is kept for the model.
    pub async fn until_ended(self, sink: Box<dyn OutputSink>) -> Ended {
        let Self { mut watch, fresh, stop } = self;
        watch.redirect(Box::new(Both { sink, fresh }));
        watch.until_ended(stop).await
    }
}

/// Output for clients and for the model.
struct Both {
    sink: Box<dyn OutputSink>,
    fresh: Arc<Mutex<Kept>>,
}

impl OutputSink for Both {
    fn push(&mut self, text: &str) -> String {
        let fit = self.sink.push(text);
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner).push(&fit);
        fit
    }

    fn finish(&mut self) -> String {
        self.sink.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> JobResult {
        JobResult {
            outcome: ToolOutcome::Ok,
            output: text.to_owned(),
        }
    }

    #[test]
    fn only_the_newest_results_are_kept() {
        let jobs = Jobs::default();
        for number in 0..=MAX_ENDED {
            jobs.ended(JobId(format!("j{number}")), result(&number.to_string()));
        }
        assert!(matches!(jobs.look(&JobId("j0".into())), JobView::Unknown { known } if known.len() == MAX_ENDED));
        assert_eq!(jobs.look(&JobId("j1".into())), JobView::Ended(result("1")));
    }

    #[tokio::test]
    async fn waiting_for_a_job_that_does_not_run_takes_no_time() {
        let jobs = Jobs::default();
        jobs.over(&JobId("j1".into())).await;
        assert!(jobs.take(&JobId("j1".into())).is_none());
    }
}
