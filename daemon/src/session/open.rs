//! Opening a session: read its state and what follows it, fold, and start its actor.

use super::actor::{Actor, first_live, parked};
use super::clock::SessionClock;
use super::commit::envelope;
use super::deps::Deps;
use super::details::{Details, Parked};
use super::handle::{Handle, MAILBOX};
use super::live::{Presence, Publisher, RING_EVENTS, extend_ring};
use super::reconcile::Runner;
use super::state::{STATE_VERSION, State};
use crate::config::{Project, Projects};
use crate::log::{EventLog, LogError, PAGE_ROWS, Row, SessionKey, SessionRow};
use crate::tool::Jobs;
use protocol::{ErrorKind, Event, RpcError, Seq, SessionId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A session's actor and the task it lives in.
pub(crate) struct Opened {
    pub(crate) handle: Handle,
    pub(crate) task: JoinHandle<()>,
}

/// Opens the session of `row`.
pub(crate) async fn open(deps: Arc<Deps>, row: SessionRow) -> Result<Opened, RpcError> {
    let session = SessionId(row.id.clone());
    let state = folded(&deps.log, row.key).await?;
    let environment = environment(&deps.log, row.key)
        .await
        .map_err(|error| super::actor::storage(&error))?;
    let details = Details::load(&deps.log, row.key, &state)
        .await
        .map_err(|error| super::actor::storage(&error))?;
    let jobs = ended_jobs(&deps, row.key, &state)
        .await
        .map_err(|error| super::actor::storage(&error))?;
    let age = Duration::from_millis((deps.clocks.wall)().ms_since(state.at));
    let mut parked = parked(&state, age, &deps);
    let mut ring = VecDeque::new();
    let recent = deps
        .log
        .read_before(row.key, state.seq.0 + 1, RING_EVENTS.min(PAGE_ROWS))
        .await;
    let recent = recent.map_err(|error| super::actor::storage(&error))?;
    // Newest first, and only as far back as the log is whole: who wants more reads it there and learns what is wrong with it.
    let whole = recent.into_iter().zip((1..=state.seq.0).rev());
    let whole = whole.map_while(|(row, seq)| envelope(row).filter(|event| event.seq.0 == seq));
    let mut whole: Vec<_> = whole.map(Arc::new).collect();
    whole.reverse();
    extend_ring(&mut ring, whole);
    let project = project(&deps, &state.root).await.unwrap_or_else(|error| {
        // Nothing goes on without what it may forbid: whoever acts on the session is refused with the reason.
        tracing::warn!(%session, %error, "a project's file is not read");
        if state.turn.is_some() {
            parked = Parked::Yes;
        }
        Project::default()
    });
    let (sender, mailbox) = mpsc::channel(MAILBOX);
    let sandbox = deps.standing.sandbox(&project);
    let clock = SessionClock::new(deps.clocks, state.at);
    let mut first = first_live(&state, &session, &details, parked, &sandbox, clock.now());
    first.ring = Arc::new(ring.clone());
    let publisher = Publisher::new(first);
    let presence = Arc::new(Presence::default());
    let handle = Handle::new(sender, publisher.clone(), Arc::clone(&presence));
    let mut actor = Actor {
        session,
        key: row.key,
        clock,
        grace_until: tokio::time::Instant::now()
            + if state.turn.is_some() {
                deps.standing.tuning().grace
            } else {
                Duration::ZERO
            },
        parked,
        environment,
        place: None,
        project,
        tools: deps.standing.tools(),
        sandbox,
        jobs,
        history: None,
        instructions: None,
        ring,
        publisher,
        presence,
        runner: Runner::default(),
        mailbox,
        alone_since: None,
        asking_since: None,
        state,
        details,
        deps,
    };
    actor.begin().await?;
    let task = tokio::spawn(actor.run());
    Ok(Opened { handle, task })
}

/// What the file of the project at `root` says now, read off the runtime's threads.
///
/// # Errors
/// A file that cannot be read or understood.
pub(crate) async fn project(deps: &Deps, root: &str) -> Result<Project, RpcError> {
    project_of(Arc::clone(&deps.projects), root).await
}

/// As [`project`].
pub(super) async fn project_of(projects: Arc<Projects>, root: &str) -> Result<Project, RpcError> {
    let root = PathBuf::from(root);
    match tokio::task::spawn_blocking(move || projects.load(&root)).await {
        Ok(loaded) => loaded.map_err(|error| error.told()),
        Err(error) => Err(RpcError::new(
            ErrorKind::Internal,
            format!("the project's file could not be read: {error}"),
        )),
    }
}

/// The jobs' table with the results that are still of interest.
async fn ended_jobs(deps: &Deps, session: SessionKey, state: &State) -> Result<Jobs, LogError> {
    let jobs = Jobs::until(deps.drain.begun());
    for (_, seq) in &state.ended_jobs {
        for row in deps.log.read(session, seq.0.saturating_sub(1), 1).await? {
            if let Ok(Some(event)) = Event::parse(&row.kind, &row.body) {
                super::actor::note_end(&jobs, &event);
            }
        }
    }
    Ok(jobs)
}

/// The state at the head.
pub(super) async fn folded(log: &EventLog, session: SessionKey) -> Result<State, RpcError> {
    let storage = |error: LogError| super::actor::storage(&error);
    let saved = log.saved_state(session).await.map_err(storage)?;
    let saved = saved.filter(|saved| saved.version == STATE_VERSION);
    let mut state: State = saved
        .and_then(|saved| serde_json::from_slice(&saved.bytes).ok())
        .unwrap_or_default();
    loop {
        let rows = log.read(session, state.seq.0, PAGE_ROWS).await.map_err(storage)?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            fold(&mut state, &row)?;
        }
    }
    Ok(state)
}

fn fold(state: &mut State, row: &Row) -> Result<(), RpcError> {
    let unreadable = |why: &str| {
        RpcError::new(
            ErrorKind::SessionUnreadable,
            format!("the session's log cannot be read at event {}: {why}", row.seq),
        )
        .hint("other sessions are not affected; agentctl tail shows what can be read")
        .with("seq", row.seq)
    };
    if row.seq != state.seq.0 + 1 {
        return Err(unreadable("an event is missing"));
    }
    match Event::parse(&row.kind, &row.body) {
        Ok(Some(event)) => state.apply(Seq(row.seq), Time(row.at_ms), &event),
        Ok(None) => (state.seq, state.at) = (Seq(row.seq), Time(row.at_ms)),
        Err(error) => return Err(unreadable(&error.to_string())),
    }
    Ok(())
}

/// The newest environment that stands in the private part of the log.
async fn environment(log: &EventLog, session: SessionKey) -> Result<BTreeMap<String, String>, LogError> {
    let mut nth = 1;
    loop {
        let changed = log.seq_of_nth_last(session, "session.changed", nth).await?;
        let seq = changed.unwrap_or(1);
        let rows = log.read(session, seq - 1, 1).await?;
        let private = rows.first().and_then(|row| row.private.as_deref());
        let private = private.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok());
        let environment = private.as_ref().and_then(|private| private.get("environment"));
        match environment.and_then(|environment| serde_json::from_value(environment.clone()).ok()) {
            Some(environment) => return Ok(environment),
            None if changed.is_none() => return Ok(BTreeMap::new()),
            None => nth += 1,
        }
    }
}
