//! The owner of one session: one select, one match. For each input: decide, append, apply, publish, answer, reconcile; no other
//! input is taken in between. It waits for its mailbox, its effects, its deadline and the log's answer, for nothing else.

mod commands;
mod work;

use super::clock::{LOOK_AGAIN, SessionClock};
use super::commit::{append, envelopes};
use super::decide::budget::Budget;
use super::decide::{Draft, decide};
use super::deps::{CostLimits, Deps};
use super::details::{Details, Parked, snapshot};
use super::drain::Draining;
use super::effect::model::ModelEnd;
use super::handle::Message;
use super::input::{Context, Input};
use super::live::{Feed, Live, Presence, Publisher, extend_ring};
use super::place::LazyPlace;
use super::reconcile::{End, Runner};
use super::state::{Stage, State};
use super::wanted::{Due, Effect, deadline, wanted};
use crate::config::{Project, RuleSet};
use crate::context::history::History;
use crate::context::instructions::Instructions;
use crate::log::{LogError, SessionKey};
use crate::target::{ADDED_ROOTS_LIMIT, sandbox};
use crate::tool::jobs::JobResult;
use crate::tool::{Jobs, Tool};
use protocol::event::{Envelope, Event, ItemStatus, ItemType};
use protocol::frame::OpenType;
use protocol::{ErrorKind, RpcError, SessionId, Time, Unattended, UnattendedPolicy};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The owner of a session.
pub(crate) struct Actor {
    pub(crate) session: SessionId,
    pub(crate) key: SessionKey,
    pub(crate) deps: Arc<Deps>,
    pub(crate) state: State,
    pub(crate) details: Details,
    pub(crate) clock: SessionClock,
    /// Until then retries and unattended approvals wait, so that people can come back after a restart.
    pub(crate) grace_until: Instant,
    pub(crate) parked: Parked,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) place: Option<LazyPlace>,
    /// What the project's own file says; while the session lives it only narrows.
    pub(crate) project: Project,
    /// What models are offered; while the session lives none is added.
    pub(crate) tools: Arc<[Arc<dyn Tool>]>,
    /// What commands may reach; while the session lives it only narrows.
    pub(crate) sandbox: sandbox::Settings,
    pub(crate) jobs: Jobs,
    pub(crate) history: Option<History>,
    /// The project's instructions as the turn that runs began with.
    pub(crate) instructions: Option<Instructions>,
    pub(crate) ring: VecDeque<Arc<Envelope>>,
    pub(crate) publisher: Publisher,
    pub(crate) presence: Arc<Presence>,
    pub(crate) runner: Runner,
    pub(crate) mailbox: mpsc::Receiver<Message>,
    /// Since when nobody who can answer is there. While the machine sleeps nobody can come, so this patience is measured awake.
    pub(crate) alone_since: Option<Instant>,
    /// Since when approvals wait.
    pub(crate) asking_since: Option<Instant>,
}

/// Whether the actor goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Go,
    End,
}

/// Why nothing was committed.
enum Refused {
    /// Nothing changed; the session goes on.
    No(RpcError),
    /// The log and the session may differ: the actor ends, and the next request reads the log again.
    Broken(RpcError),
}

/// How long an append may wait for room in the log's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// A client can come again.
    Command,
    /// The end of an effect must not be lost.
    Effect,
}

impl Actor {
    /// Lives until it is idle for long, is closed, or cannot append.
    pub(crate) async fn run(mut self) {
        self.live().await;
        self.mailbox.close();
        self.runner.shutdown().await;
        // Whoever still holds a handle holds no events by it.
        self.ring.clear();
        self.publish();
    }

    /// Goes on where the log ends; a parked turn waits for somebody.
    ///
    /// # Errors
    /// The log takes no writes: the session is not opened.
    pub(crate) async fn begin(&mut self) -> Result<(), RpcError> {
        if self.parked == Parked::No {
            self.commit(Input::Restarted, Patience::Effect)
                .await
                .map_err(|refused| match refused {
                    Refused::No(error) | Refused::Broken(error) => error,
                })?;
            self.reconcile();
        }
        Ok(())
    }

    async fn live(&mut self) {
        let mut attached = self.presence.watch();
        let mut answerers = self.deps.answerers.watch();
        loop {
            self.note_attendance();
            let wake = self.wake();
            let next = tokio::select! {
                message = self.mailbox.recv() => match message {
                    Some(message) => self.take(message).await,
                    None => Next::End,
                },
                (_, end) = self.runner.next() => self.ended(end).await,
                _ = attached.changed() => Next::Go,
                _ = answerers.changed() => Next::Go,
                () = sleep_until(wake) => self.on_time().await,
            };
            if next == Next::End {
                return;
            }
            self.reconcile();
        }
    }

    /// When to wake without being asked.
    fn wake(&self) -> Option<Instant> {
        if self.parked == Parked::Yes {
            return Some(Instant::now() + self.deps.standing.tuning().passivate_after);
        }
        let due = self.due_at().map(|at| at.min(Instant::now() + LOOK_AGAIN));
        let idle = self
            .idle()
            .then(|| Instant::now() + self.deps.standing.tuning().passivate_after);
        due.into_iter().chain(self.unattended_at()).chain(idle).min()
    }

    /// When the state's earliest deadline is over.
    fn due_at(&self) -> Option<Instant> {
        let (at, due) = deadline(&self.state)?;
        let at = self.clock.instant(at);
        Some(if due == Due::Retry {
            at.max(self.grace_until)
        } else {
            at
        })
    }

    /// Whether nothing goes on that would need the session in memory.
    fn idle(&self) -> bool {
        // Who lists the session sees a timed mode end.
        self.state.turn.is_none() && self.state.jobs.is_empty() && self.state.settings.mode_until.is_none()
    }

    /// When the unattended policy decides.
    fn unattended_at(&self) -> Option<Instant> {
        let unattended = self.state.turn.as_ref()?.unattended;
        if unattended.policy == UnattendedPolicy::Wait {
            return None;
        }
        let patience = Duration::from_millis(unattended.after_ms.unwrap_or(Unattended::DEFAULT_AFTER_MS));
        Some((self.asking_since?.max(self.alone_since?) + patience).max(self.grace_until))
    }

    fn note_attendance(&mut self) {
        let now = Instant::now();
        let attended = self.presence.can_answer() || self.deps.answerers.can_answer();
        self.alone_since = if attended { None } else { self.alone_since.or(Some(now)) };
        let asking = self.state.pending().next().is_some();
        self.asking_since = if asking { self.asking_since.or(Some(now)) } else { None };
    }

    async fn on_time(&mut self) -> Next {
        if self.parked == Parked::Yes || self.idle() {
            let needed = self.publisher.watched() || !self.mailbox.is_empty();
            return if needed { Next::Go } else { Next::End };
        }
        // Read after the deadline is: one that has passed is "now" at the moment it is asked for.
        let over = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
        if over(self.unattended_at()) {
            self.settle(Input::Unattended, Patience::Effect).await
        } else if over(self.due_at()) {
            self.settle(Input::Deadline, Patience::Effect).await
        } else {
            Next::Go
        }
    }

    /// Commits an input nobody waits for.
    async fn settle(&mut self, input: Input, patience: Patience) -> Next {
        match self.commit(input, patience).await {
            Ok(_) | Err(Refused::No(_)) => Next::Go,
            Err(Refused::Broken(_)) => Next::End,
        }
    }

    async fn ended(&mut self, end: End) -> Next {
        let input = match end {
            End::Tool(end) => Input::ToolEnded(end),
            End::Job(end) => Input::JobEnded(end),
            End::Model(end) => {
                let ModelEnd {
                    result,
                    history,
                    instructions,
                } = *end;
                (self.history, self.instructions) = (Some(history), instructions);
                match result {
                    Ok(replied) => Input::ModelReplied(Box::new(replied)),
                    Err(failed) => Input::ModelFailed(Box::new(failed)),
                }
            }
        };
        self.settle(input, Patience::Effect).await
    }

    /// Decides, appends, applies, publishes.
    async fn commit(&mut self, input: Input, patience: Patience) -> Result<Vec<Arc<Envelope>>, Refused> {
        let at = self.clock.now().max(self.state.at);
        let mut drafts = self.decide(at, input.clone());
        let cut = self.cut_by(&drafts);
        if let Some(feed) = &cut {
            // What the model says from here on is neither recorded nor shown.
            feed.freeze();
            drafts = self.decide(at, input);
        }
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        let mut after = self.state.clone();
        for draft in &drafts {
            after.apply(after.seq.next(), at, &draft.event);
        }
        let append = append(self.key, &self.state, &after, &drafts, at).map_err(|error| {
            tracing::error!(%error, "an event cannot be written as JSON");
            Refused::No(fault("an event cannot be written"))
        })?;
        let log = &self.deps.log;
        let appended = match patience {
            Patience::Command => log.append(append).await,
            Patience::Effect => log.append_when_free(append).await,
        };
        if let (Err(_), Some(feed)) = (&appended, &cut) {
            feed.thaw();
        }
        let appended = appended.map_err(|error| match error {
            LogError::Busy => Refused::No(super::handle::busy()),
            LogError::NameTaken => Refused::No(name_taken()),
            other => {
                tracing::error!(session = %self.session, error = %other, "an append failed; the session is read anew");
                Refused::Broken(storage(&other))
            }
        })?;
        let first = self.state.seq.next();
        self.state = after;
        for draft in &drafts {
            self.details.note(at, &draft.event);
            note_end(&self.jobs, &draft.event);
            if let Event::StepCompleted(step) = &draft.event {
                self.deps.spending.note(at, step.cost.unwrap_or(0.0));
            }
        }
        self.details.prune(&self.state);
        if self.state.turn.is_none() {
            (self.history, self.instructions) = (None, None);
        }
        let events = envelopes(first, appended);
        extend_ring(&mut self.ring, events.iter().cloned());
        self.publish();
        Ok(events)
    }

    fn decide(&self, at: Time, input: Input) -> Vec<Draft> {
        let set = self.rules();
        let context = Context {
            at,
            new_id: &|| uuid::Uuid::now_v7().to_string(),
            jitter: fastrand::f64(),
            retries: self.deps.standing.tuning().retries,
            rules: &set.rules,
            builtin_allow: set.builtin_allow,
            shown: self.shown(),
            project_notice: self.project.notice(),
            config_fault: self.deps.standing.fault(),
            budget: self.budget(at),
            draining: self.deps.drain.state(),
            announce: self.deps.models.announce(self.state.settings.model.as_deref()),
        };
        decide(&self.state, &context, input)
    }

    fn budget(&self, at: Time) -> Budget {
        let CostLimits { per_session, per_day } = self.deps.standing.cost_limits();
        Budget {
            per_session,
            per_day,
            today: self.deps.spending.on_day(at),
        }
    }

    /// The rules that hold for the session's project.
    fn rules(&self) -> RuleSet {
        let set = self.deps.rules.now();
        let root = Path::new(&self.state.root);
        let own = set.rules.iter().filter_map(|rule| rule.bind(root));
        let rules = own.chain(self.project.rules.iter().cloned()).collect();
        RuleSet {
            rules,
            builtin_allow: set.builtin_allow,
        }
    }

    /// The feed of the model call that these events cut.
    fn cut_by(&self, drafts: &[Draft]) -> Option<Arc<Feed>> {
        let cuts = |draft: &Draft| matches!(&draft.event, Event::ItemCompleted(item) if item.status == ItemStatus::Interrupted);
        let key = self.state.turn.as_ref()?.model_key();
        drafts
            .iter()
            .any(cuts)
            .then(|| self.runner.feed(&Effect::Model(key)).cloned())?
    }

    /// What the running model call has shown, for a decision that cuts it.
    fn shown(&self) -> Vec<(usize, ItemType, String)> {
        let Some(turn) = &self.state.turn else {
            return Vec::new();
        };
        let Some(feed) = self.runner.feed(&Effect::Model(turn.model_key())) else {
            return Vec::new();
        };
        let text = |(index, item_type, text)| match item_type {
            OpenType::Text => Some((index, ItemType::Text, text)),
            OpenType::Reasoning => Some((index, ItemType::Reasoning, text)),
            OpenType::Refusal => Some((index, ItemType::Refusal, text)),
            OpenType::Opaque | OpenType::Call => None,
        };
        feed.shown().into_iter().filter_map(text).collect()
    }

    pub(crate) fn publish(&self) {
        let wanted = wanted(&self.state);
        let feeds = wanted
            .keys()
            .filter_map(|effect| self.runner.feed(effect))
            .cloned()
            .collect();
        self.publisher.publish(Live {
            head: self.state.seq,
            ring: Arc::new(self.ring.clone()),
            feeds,
            snapshot: Arc::new(snapshot(
                &self.session,
                &self.state,
                &self.details,
                self.parked,
                &self.sandbox,
            )),
        });
    }
}

/// Lets the tools see the end of a job once it is recorded.
pub(crate) fn note_end(jobs: &Jobs, event: &Event) {
    if let Event::JobEnded(ended) = event {
        jobs.ended(
            ended.job.clone(),
            JobResult {
                outcome: ended.outcome,
                output: ended.output.clone(),
            },
        );
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

pub(super) fn fault(what: &str) -> RpcError {
    RpcError::new(ErrorKind::Internal, what)
}

/// A name belongs to one session.
pub(crate) fn name_taken() -> RpcError {
    RpcError::new(ErrorKind::NameTaken, "another session has this name")
        .hint("choose another name, or rename that session")
}

/// Who would give a session more directories than it may have is told so.
pub(crate) fn too_many_roots() -> RpcError {
    let message = format!("a session works in at most {ADDED_ROOTS_LIMIT} directories beside its project");
    RpcError::new(ErrorKind::InvalidParams, message).hint("add one directory that holds several of them")
}

/// What a client is told when the log failed.
pub(crate) fn storage(error: &LogError) -> RpcError {
    let told = RpcError::new(
        ErrorKind::StorageFailed,
        format!("the session cannot be written: {error}"),
    );
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told.hint("try again; the daemon's log has the detail"),
    }
}

/// The live view's first value.
pub(crate) fn first_live(
    state: &State,
    session: &SessionId,
    details: &Details,
    parked: Parked,
    sandbox: &sandbox::Settings,
) -> Live {
    let snapshot = Arc::new(snapshot(session, state, details, parked, sandbox));
    Live {
        head: state.seq,
        ring: Arc::default(),
        feeds: Vec::new(),
        snapshot,
    }
}

/// Whether an opened session waits for somebody, rather than going on by itself.
pub(crate) fn parked(state: &State, age: Duration, deps: &Deps) -> Parked {
    let open = state
        .turn
        .as_ref()
        .is_some_and(|turn| !matches!(turn.stage, Stage::Stopping { .. }));
    let waits = deps.standing.tuning().parks(age) || deps.drain.state() == Draining::Yes;
    if open && waits { Parked::Yes } else { Parked::No }
}
