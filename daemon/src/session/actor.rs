//! The owner of one session: one select, one match. For each input: decide, append, apply, publish, answer, reconcile; no other
//! input is taken in between. It waits for its mailbox, its effects, its deadline and the log's answer, for nothing else.

use super::commit::{append, envelopes};
use super::decide::{Draft, decide};
use super::deps::Deps;
use super::details::{Details, Parked, snapshot};
use super::effect::model::{ModelCall, ModelEnd};
use super::effect::tool::ToolCall;
use super::handle::{AnswerRequest, Message, Reply};
use super::input::{Answer, Context, Input};
use super::live::{Live, Presence, Publisher, extend_ring};
use super::reconcile::{End, Runner};
use super::state::{MAX_WAITING, Stage, State};
use super::wanted::{Due, Effect, deadline, wanted};
use super::{clock::SessionClock, live::Feed};
use crate::context::assemble::Audience;
use crate::context::history::History;
use crate::log::{LogError, SessionKey};
use crate::target::sandbox::Confinement;
use crate::target::{Target, TargetSpec};
use crate::tool::{Place, ReadSet};
use protocol::event::{Envelope, Event, ItemType};
use protocol::frame::OpenType;
use protocol::method::{Answered, Interrupted, Sent};
use protocol::{ErrorKind, InputId, RpcError, SessionId, Time, Unattended, UnattendedPolicy};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Variables that let a command act as the person at the screen: only for commands that a person approved.
const PERSONAL: [&str; 4] = ["SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];

/// The owner of a session.
pub(crate) struct Actor {
    pub(crate) session: SessionId,
    pub(crate) key: SessionKey,
    pub(crate) deps: Arc<Deps>,
    pub(crate) state: State,
    pub(crate) details: Details,
    pub(crate) clock: SessionClock,
    pub(crate) opened: Instant,
    pub(crate) parked: Parked,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) place: Option<Place>,
    pub(crate) history: Option<History>,
    pub(crate) ring: VecDeque<Arc<Envelope>>,
    pub(crate) publisher: Publisher,
    pub(crate) presence: Arc<Presence>,
    pub(crate) runner: Runner,
    pub(crate) mailbox: mpsc::Receiver<Message>,
    /// Since when nobody who can answer is there.
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
    Busy(RpcError),
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
        if self.begin().await == Next::Go {
            self.live().await;
        }
        self.mailbox.close();
        self.runner.shutdown().await;
    }

    async fn begin(&mut self) -> Next {
        if self.parked == Parked::Yes {
            return Next::Go;
        }
        match self.commit(Input::Restarted, Patience::Effect).await {
            Ok(_) => {
                self.reconcile();
                Next::Go
            }
            Err(_) => Next::End,
        }
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
            return Some(self.opened + self.deps.tuning.passivate_after);
        }
        let due = deadline(&self.state).map(|(at, due)| {
            let at = self.clock.instant(at);
            if due == Due::Retry && self.ring.is_empty() { at.max(self.opened + self.deps.tuning.grace) } else { at }
        });
        let idle = self.state.turn.is_none().then(|| Instant::now() + self.deps.tuning.passivate_after);
        due.into_iter().chain(self.unattended_at()).chain(idle).min()
    }

    /// When the unattended policy decides.
    fn unattended_at(&self) -> Option<Instant> {
        let unattended = self.state.turn.as_ref()?.unattended;
        if unattended.policy == UnattendedPolicy::Wait {
            return None;
        }
        let patience = Duration::from_millis(unattended.after_ms.unwrap_or(Unattended::DEFAULT_AFTER_MS));
        Some(self.asking_since?.max(self.alone_since?) + patience)
    }

    fn note_attendance(&mut self) {
        let now = Instant::now();
        let attended = self.presence.can_answer() || self.deps.answerers.can_answer();
        self.alone_since = if attended { None } else { self.alone_since.or(Some(now)) };
        let asking = self.state.pending().next().is_some();
        self.asking_since = if asking { self.asking_since.or(Some(now)) } else { None };
    }

    async fn on_time(&mut self) -> Next {
        if self.state.turn.is_none() || self.parked == Parked::Yes {
            return if self.publisher.watched() || !self.mailbox.is_empty() { Next::Go } else { Next::End };
        }
        let input = match self.unattended_at() {
            Some(at) if at <= Instant::now() => Input::Unattended,
            _ => Input::Deadline,
        };
        self.settle(input, Patience::Effect).await
    }

    /// Commits an input nobody waits for.
    async fn settle(&mut self, input: Input, patience: Patience) -> Next {
        match self.commit(input, patience).await {
            Ok(_) | Err(Refused::Busy(_)) => Next::Go,
            Err(Refused::Broken(_)) => Next::End,
        }
    }

    async fn ended(&mut self, end: End) -> Next {
        let input = match end {
            End::Tool(end) => Input::ToolEnded(end),
            End::Model(end) => {
                let ModelEnd { result, history } = *end;
                self.history = Some(history);
                match result {
                    Ok(replied) => Input::ModelReplied(Box::new(replied)),
                    Err(failed) => Input::ModelFailed(Box::new(failed)),
                }
            }
        };
        self.settle(input, Patience::Effect).await
    }

    async fn take(&mut self, message: Message) -> Next {
        match message {
            Message::Send(send, reply) => {
                let answer = self.send(*send).await;
                self.reply(reply, answer)
            }
            Message::CancelInput(input_id, by, reply) => {
                let answer = match self.state.waiting(&input_id) {
                    Some(_) => self.command(Input::CancelInput { input_id, by }).await.map(drop),
                    None => Err(Refused::Busy(not_waiting(&input_id))),
                };
                self.reply(reply, answer)
            }
            Message::ResumeQueue(by, reply) => {
                let answer = self.command(Input::ResumeQueue { by }).await.map(drop);
                self.reply(reply, answer)
            }
            Message::Interrupt(turn, by, reply) => {
                let answer = self.interrupt(turn, by).await;
                self.reply(reply, answer)
            }
            Message::Answer(answer, reply) => {
                let answer = self.answer(*answer).await;
                self.reply(reply, answer)
            }
            Message::Change(changed, reply) => {
                let answer = self.commit(Input::Change(changed), Patience::Command).await.map(drop);
                self.reply(reply, answer)
            }
            Message::Refresh(environment, by) => self.refresh(environment, by).await,
            Message::ResumeTurn(_, reply) => {
                let answer = self.unpark().await;
                self.reply(reply, answer)
            }
            Message::Close(reply) => {
                self.mailbox.close();
                self.runner.shutdown().await;
                let _ = reply.send(Ok(()));
                Next::End
            }
        }
    }

    #[expect(clippy::unused_self, reason = "reads as part of the actor's order: answer comes after publish")]
    fn reply<T>(&self, reply: Reply<T>, answer: Result<T, Refused>) -> Next {
        let (answer, next) = match answer {
            Ok(answer) => (Ok(answer), Next::Go),
            Err(Refused::Busy(error)) => (Err(error), Next::Go),
            Err(Refused::Broken(error)) => (Err(error), Next::End),
        };
        // A client that is gone does not hear the answer; what it asked for stands.
        let _ = reply.send(answer);
        next
    }

    async fn send(&mut self, send: super::input::Send) -> Result<Sent, Refused> {
        if let Some(sent) = self.known(&send).await? {
            return Ok(sent);
        }
        if self.state.queue.len() + self.state.steers.len() >= MAX_WAITING {
            let error = RpcError::new(ErrorKind::QueueFull, format!("{MAX_WAITING} inputs wait already"))
                .hint("wait for the turn to end, or cancel some: agentctl queue list");
            return Err(Refused::Busy(error));
        }
        let input_id = send.input_id.clone();
        self.command(Input::Send(send)).await?;
        let accepted = self.ring.iter().rev().find_map(|envelope| match envelope.event() {
            Some(Event::InputAccepted(accepted)) if accepted.input_id == input_id => Some((envelope.seq, accepted.disposition)),
            _ => None,
        });
        let Some((seq, disposition)) = accepted else { return Err(Refused::Busy(fault("the input left no event"))) };
        let turn = self.state.turn.as_ref().filter(|turn| turn.inputs.contains(&input_id));
        let steered = self.state.steers.iter().any(|waiting| waiting.input_id == input_id);
        let turn = turn.or(self.state.turn.as_ref().filter(|_| steered)).map(|turn| turn.id.clone());
        Ok(Sent { input_id, seq, disposition, turn })
    }

    /// The recorded answer to an input that is known already.
    async fn known(&mut self, send: &super::input::Send) -> Result<Option<Sent>, Refused> {
        let row = self.deps.log.find_input(self.key, &send.input_id.0).await.map_err(|error| Refused::Busy(storage(&error)))?;
        let Some(row) = row else { return Ok(None) };
        let Ok(Some(Event::InputAccepted(accepted))) = Event::parse(&row.kind, &row.body) else {
            return Err(Refused::Busy(fault("an accepted input cannot be read")));
        };
        if accepted.content != send.content {
            let error = RpcError::new(ErrorKind::InputConflict, format!("input {} is known with another content", send.input_id))
                .hint("use a new input_id");
            return Err(Refused::Busy(error));
        }
        let (input_id, seq, disposition) = (accepted.input_id, protocol::Seq(row.seq), accepted.disposition);
        Ok(Some(Sent { input_id, seq, disposition, turn: None }))
    }

    async fn interrupt(&mut self, turn: Option<protocol::TurnId>, by: protocol::By) -> Result<Interrupted, Refused> {
        let running = self.state.turn.as_ref().map(|turn| turn.id.clone());
        let named = turn.clone().or_else(|| running.clone());
        if named.is_none() || named != running {
            return Ok(Interrupted { interrupted: false, turn, outcome: self.state.outcome });
        }
        self.command(Input::Interrupt { turn, by }).await?;
        Ok(Interrupted { interrupted: true, turn: running, outcome: None })
    }

    async fn answer(&mut self, request: AnswerRequest) -> Result<Answered, Refused> {
        let Some((recorded, _)) = self.details.approvals.get(&request.id).cloned() else {
            let error = RpcError::new(ErrorKind::AlreadyResolved, format!("approval {} is settled already", request.id));
            return Err(Refused::Busy(error));
        };
        if recorded.digest != request.digest {
            let error = RpcError::new(ErrorKind::DigestMismatch, "the answer is for another request than the one that waits")
                .hint("read the request again and answer that");
            return Err(Refused::Busy(error));
        }
        if !recorded.choices.contains(&request.decision) {
            let error = RpcError::new(ErrorKind::InvalidParams, "this answer is not among the choices of the request")
                .with("choices", &recorded.choices);
            return Err(Refused::Busy(error));
        }
        let (id, decision) = (request.id.clone(), request.decision);
        let answer = Answer {
            approval: request.id,
            decision,
            feedback: request.feedback,
            request: recorded,
            by: request.by,
        };
        let events = self.command(Input::Answer(Box::new(answer))).await?;
        let resolved = |event: &Event| matches!(event, Event::ApprovalResolved(resolved) if resolved.approval == id);
        let seq = events.iter().find(|envelope| envelope.event().as_ref().is_some_and(resolved)).map(|envelope| envelope.seq);
        let session = self.session.clone();
        Ok(Answered { session, decision: decision.into(), seq: seq.unwrap_or(self.state.seq), id })
    }

    /// A client's environment is taken over between turns.
    async fn refresh(&mut self, environment: BTreeMap<String, String>, by: protocol::By) -> Next {
        let environment = (self.deps.environment)(&environment);
        if environment == self.environment || self.state.turn.is_some() {
            return Next::Go;
        }
        let next = self.settle(Input::Refresh { environment: environment.clone(), by }, Patience::Command).await;
        self.environment = environment;
        self.place = None;
        next
    }

    /// A turn of an earlier life goes on, once somebody acts on the session.
    async fn unpark(&mut self) -> Result<(), Refused> {
        if self.parked == Parked::Yes {
            self.commit(Input::Restarted, Patience::Effect).await?;
            self.parked = Parked::No;
        }
        Ok(())
    }

    async fn command(&mut self, input: Input) -> Result<Vec<Arc<Envelope>>, Refused> {
        self.unpark().await?;
        self.commit(input, Patience::Command).await
    }

    /// Decides, appends, applies, publishes.
    async fn commit(&mut self, input: Input, patience: Patience) -> Result<Vec<Arc<Envelope>>, Refused> {
        let at = self.clock.now().max(self.state.at);
        let drafts = self.decide(at, input);
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        let mut after = self.state.clone();
        for draft in &drafts {
            after.apply(after.seq.next(), at, &draft.event);
        }
        let append = append(self.key, &self.state, &after, &drafts, at).map_err(|error| {
            tracing::error!(%error, "an event cannot be written as JSON");
            Refused::Busy(fault("an event cannot be written"))
        })?;
        let log = &self.deps.log;
        let appended = match patience {
            Patience::Command => log.append(append.clone()).await,
            Patience::Effect => log.append_when_free(append.clone()).await,
        };
        let appended = appended.map_err(|error| match error {
            LogError::Busy => Refused::Busy(super::handle::busy()),
            LogError::NameTaken => Refused::Busy(name_taken()),
            other => {
                tracing::error!(session = %self.session, error = %other, "an append failed; the session is read anew");
                Refused::Broken(storage(&other))
            }
        })?;
        self.state = after;
        for draft in &drafts {
            self.details.note(at, &draft.event);
        }
        self.details.prune(&self.state);
        if self.state.turn.is_none() {
            self.history = None;
        }
        let events = envelopes(append, appended);
        extend_ring(&mut self.ring, events.iter().cloned());
        self.publish();
        Ok(events)
    }

    fn decide(&self, at: Time, input: Input) -> Vec<Draft> {
        let context = Context {
            at,
            new_id: &|| uuid::Uuid::now_v7().to_string(),
            jitter: jitter(),
            retries: self.deps.tuning.retries,
            rules: &self.deps.rules,
            shown: self.shown(),
            announce: self.deps.models.announce(self.state.settings.model.as_deref()),
        };
        decide(&self.state, &context, input)
    }

    /// What the running model call has shown, for a decision that cuts it.
    fn shown(&self) -> Vec<(usize, ItemType, String)> {
        let Some(turn) = &self.state.turn else { return Vec::new() };
        let Some(feed) = self.runner.feed(&Effect::Model(turn.model_key())) else { return Vec::new() };
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
        let feeds = wanted.keys().filter_map(|effect| self.runner.feed(effect)).cloned().collect();
        self.publisher.publish(Live {
            head: self.state.seq,
            ring: Arc::new(self.ring.clone()),
            feeds,
            snapshot: Arc::new(snapshot(&self.session, &self.state, &self.details, self.parked)),
        });
    }

    /// Makes what runs equal to what is wanted.
    fn reconcile(&mut self) {
        if self.parked == Parked::Yes {
            return;
        }
        let wanted = wanted(&self.state);
        let fresh = self.runner.adjust(&wanted);
        if fresh.is_empty() {
            return;
        }
        for effect in fresh {
            let feed = Feed::new(self.publisher.clone());
            match &effect {
                Effect::Model(_) => self.start_model(effect, feed),
                Effect::Tool(_) => self.start_tool(effect, feed),
            }
        }
        debug_assert_eq!(self.runner.running(), wanted.into_keys().collect(), "what runs is what is wanted");
        self.publish();
    }

    fn start_model(&mut self, effect: Effect, feed: Arc<Feed>) {
        let (Effect::Model(key), Some(turn)) = (&effect, &self.state.turn) else { return };
        let interactive = turn.interactive;
        let call = ModelCall {
            key: key.clone(),
            profile: self.state.settings.model.clone(),
            models: Arc::clone(&self.deps.models),
            log: self.deps.log.clone(),
            session: self.key,
            history: self.history.take().unwrap_or_default(),
            tools: Arc::clone(&self.deps.tools),
            turn_started_at: turn.started_at,
            place: self.place(),
            cwd: self.state.cwd.clone(),
            root: self.state.root.clone(),
            audience: if interactive { Audience::Person } else { Audience::Nobody },
            feed: Arc::clone(&feed),
        };
        self.runner.start(effect, feed, |_| async move { End::Model(Box::new(call.run().await)) });
    }

    fn start_tool(&mut self, effect: Effect, feed: Arc<Feed>) {
        let Effect::Tool(call) = &effect else { return };
        let Some(requested) = self.details.calls.get(call).cloned() else { return };
        let approved = self.state.turn.as_ref().and_then(|turn| turn.call(call)).is_some_and(|call| call.approval.is_some());
        let tool = self.deps.tools.iter().find(|tool| tool.spec().name == requested.tool).cloned();
        let place = self.place().and_then(|place| if approved { Ok(place) } else { impersonal(place) });
        let (guard, log, session) = (self.deps.guard.clone(), self.deps.log.clone(), self.key);
        // Nobody looked at a call that the built-in list let through.
        let confinement = if requested.verdict.read_only && !approved { Confinement::ReadOnly } else { Confinement::Session };
        let shown = Arc::clone(&feed);
        self.runner.start(effect, feed, move |stop| async move {
            let call = ToolCall { requested, tool, place, guard, confinement, stop, log, session, feed: shown };
            End::Tool(Box::new(call.run().await))
        });
    }

    /// Where calls happen, opened when it is first needed.
    fn place(&mut self) -> Result<Place, String> {
        if let Some(place) = &self.place {
            return Ok(place.clone());
        }
        let target = Target::open(TargetSpec {
            roots: vec![PathBuf::from(&self.state.root)],
            cwd: PathBuf::from(&self.state.cwd),
            environment: self.environment.clone(),
            hidden: self.deps.hidden.clone(),
            sandbox: self.deps.sandbox.clone(),
        });
        let target = target.map_err(|error| format!("root_gone: {error}"))?;
        let read = ReadSet::default();
        for (path, hash) in &self.state.read_files {
            read.insert(path, hash);
        }
        let place = Place { target, read };
        self.place = Some(place.clone());
        Ok(place)
    }
}

/// The place without what lets a command act as the person at the screen.
fn impersonal(place: Place) -> Result<Place, String> {
    let mut environment = place.target.environment().clone();
    environment.retain(|name, _| !PERSONAL.contains(&name.as_str()));
    let target = place.target.with_environment(environment).map_err(|error| error.to_string())?;
    Ok(Place { target, read: place.read })
}

/// Between 0 and 1.
fn jitter() -> f64 {
    let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
    #[expect(clippy::cast_precision_loss, reason = "jitter needs no precision")]
    let jitter = (random >> 11) as f64 / (1_u64 << 53) as f64;
    jitter
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn fault(what: &str) -> RpcError {
    RpcError::new(ErrorKind::Internal, what)
}

fn not_waiting(input_id: &InputId) -> RpcError {
    RpcError::new(ErrorKind::InputNotFound, format!("no input {input_id} waits in this session"))
        .hint("agentctl queue list shows what waits")
}

fn name_taken() -> RpcError {
    RpcError::new(ErrorKind::NameTaken, "another session has this name").hint("choose another name, or rename that session")
}

/// What a client is told when the log failed.
pub(crate) fn storage(error: &LogError) -> RpcError {
    let told = RpcError::new(ErrorKind::StorageFailed, format!("the session cannot be written: {error}"));
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told.hint("try again; the daemon's log has the detail"),
    }
}

/// The live view's first value.
pub(crate) fn first_live(state: &State, session: &SessionId, details: &Details, parked: Parked) -> Live {
    let snapshot = Arc::new(snapshot(session, state, details, parked));
    Live { head: state.seq, ring: Arc::default(), feeds: Vec::new(), snapshot }
}

/// Whether an opened session waits for somebody, rather than going on by itself.
pub(crate) fn parked(state: &State, age: Duration, deps: &Deps) -> Parked {
    let open = state.turn.as_ref().is_some_and(|turn| !matches!(turn.stage, Stage::Stopping { .. }));
    let old = age > deps.tuning.park_after || deps.tuning.resume == super::deps::Resume::Off;
    if open && old { Parked::Yes } else { Parked::No }
}

/// What a subscription needs to follow a session.
pub(crate) type LiveWatch = watch::Receiver<Arc<Live>>;
