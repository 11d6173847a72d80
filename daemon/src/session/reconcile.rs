//! The runner: starts what the state wants and does not run, cancels what runs and is no longer wanted, and hands back each end. A
//! tool call is never started twice in one life, whatever the state says.

use super::input::{Failed, JobEnd, Retry, ToolEnd};
use super::live::Feed;
use super::wanted::{Effect, STOP_MS, Urge};
use crate::tool::{Outcome, StopLevel};
use protocol::CallId;
use protocol::event::Reason;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio_util::task::AbortOnDropHandle;

/// How an effect ended.
pub(crate) enum End {
    Model(Box<super::effect::model::ModelEnd>),
    Tool(Box<ToolEnd>),
    Job(Box<JobEnd>),
}

/// What runs.
struct Work {
    abort: AbortHandle,
    feed: Arc<Feed>,
    stop: Arc<watch::Sender<StopLevel>>,
    /// Sends the kill that follows a stop.
    escalation: Option<AbortOnDropHandle<()>>,
}

/// The running effects of one session.
#[derive(Default)]
pub(crate) struct Runner {
    tasks: JoinSet<End>,
    ids: HashMap<Id, Effect>,
    work: BTreeMap<Effect, Work>,
    started_tools: BTreeSet<CallId>,
}

impl Runner {
    /// Effects of `wanted` that do not run yet; cancels what is not wanted and passes on how urgent the rest is.
    pub(crate) fn adjust(&mut self, wanted: &BTreeMap<Effect, Urge>) -> Vec<Effect> {
        self.work.retain(|effect, work| {
            let keep = wanted.contains_key(effect);
            if !keep {
                work.abort.abort();
            }
            keep
        });
        for (effect, work) in &mut self.work {
            match wanted.get(effect) {
                Some(Urge::Stop { .. }) if work.escalation.is_none() => work.begin_stop(),
                Some(Urge::Kill) => {
                    work.stop.send_replace(StopLevel::Kill);
                }
                _ => {}
            }
        }
        let fresh = |effect: &&Effect| match effect {
            Effect::Tool(call) => !self.started_tools.contains(call),
            Effect::Model(_) | Effect::Job(_) => !self.work.contains_key(*effect),
        };
        wanted.keys().filter(fresh).cloned().collect()
    }

    /// Starts an effect; `make` gets what tells it to stop.
    pub(crate) fn start<F>(
        &mut self,
        effect: Effect,
        feed: Arc<Feed>,
        make: impl FnOnce(watch::Receiver<StopLevel>) -> F,
    ) where
        F: Future<Output = End> + Send + 'static,
    {
        if let Effect::Tool(call) = &effect {
            self.started_tools.insert(call.clone());
        }
        let (stop, signal) = watch::channel(StopLevel::Run);
        let abort = self.tasks.spawn(make(signal));
        self.ids.insert(abort.id(), effect.clone());
        self.work.insert(
            effect,
            Work {
                abort,
                feed,
                stop: Arc::new(stop),
                escalation: None,
            },
        );
    }

    /// The next end that is still wanted. Pends for ever while nothing runs.
    pub(crate) async fn next(&mut self) -> (Effect, End) {
        loop {
            let Some(joined) = self.tasks.join_next_with_id().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let id = joined.as_ref().map_or_else(tokio::task::JoinError::id, |(id, _)| *id);
            let Some(effect) = self.ids.remove(&id) else { continue };
            // The same key may run anew; only the end of the task that stands for it counts.
            if self.work.get(&effect).is_none_or(|work| work.abort.id() != id) {
                tracing::debug!(?effect, "an effect ended that nobody wants any more");
                continue;
            }
            self.work.remove(&effect);
            match joined {
                Ok((_, end)) => return (effect, end),
                Err(error) => {
                    tracing::error!(?effect, %error, "an effect panicked");
                    let end = panicked(&effect);
                    return (effect, end);
                }
            }
        }
    }

    /// The feed of one effect.
    pub(crate) fn feed(&self, effect: &Effect) -> Option<&Arc<Feed>> {
        self.work.get(effect).map(|work| &work.feed)
    }

    /// Keys of all that runs.
    pub(crate) fn running(&self) -> BTreeSet<Effect> {
        self.work.keys().cloned().collect()
    }

    /// Cancels all and waits until it is gone.
    pub(crate) async fn shutdown(&mut self) {
        self.work.clear();
        self.tasks.shutdown().await;
        self.ids.clear();
    }
}

impl Work {
    fn begin_stop(&mut self) {
        self.stop.send_replace(StopLevel::Stop);
        let stop = Arc::clone(&self.stop);
        let kill = async move {
            tokio::time::sleep(Duration::from_millis(STOP_MS)).await;
            stop.send_replace(StopLevel::Kill);
        };
        self.escalation = Some(AbortOnDropHandle::new(tokio::spawn(kill)));
    }
}

/// The end of an effect that had a fault of its own.
fn panicked(effect: &Effect) -> End {
    let message = "the daemon had an internal fault; its log has the detail".to_owned();
    match effect {
        Effect::Model(key) => End::Model(Box::new(super::effect::model::ModelEnd {
            result: Err(Failed {
                key: key.clone(),
                error: Reason {
                    kind: "internal".to_owned(),
                    message,
                    hint: None,
                },
                retry: Retry::Never,
                usage: None,
            }),
            history: crate::context::history::History::default(),
            instructions: None,
            project: None,
        })),
        Effect::Job(job) => End::Job(Box::new(JobEnd {
            output: message,
            ..super::effect::job::lost(job.clone())
        })),
        Effect::Tool(call) => End::Tool(Box::new(ToolEnd {
            call: call.clone(),
            outcome: Outcome::Error,
            output: message,
            images: Vec::new(),
            blob: None,
            produced: None,
            diff: None,
            exit_code: None,
            todo: None,
            job: None,
            duration_ms: 0,
            files: BTreeMap::new(),
        })),
    }
}
