//! Opening a session: read its state and what follows it, fold, and start its actor.

use super::actor::{Actor, first_live, parked};
use super::clock::SessionClock;
use super::commit::envelope;
use super::deps::Deps;
use super::details::Details;
use super::handle::{Handle, MAILBOX};
use super::live::{Presence, Publisher, RING_EVENTS, extend_ring};
use super::reconcile::Runner;
use super::state::{STATE_VERSION, State};
use crate::config::Project;
use crate::log::{LogError, PAGE_ROWS, Row, SessionKey, SessionRow};
use crate::tool::Jobs;
use protocol::{ErrorKind, Event, RpcError, Seq, SessionId, Time};
use std::collections::{BTreeMap, VecDeque};
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
    let (state, environment) = folded(&deps, &row).await?;
    let details = Details::load(&deps.log, row.key, &state)
        .await
        .map_err(|error| super::actor::storage(&error))?;
    let jobs = ended_jobs(&deps, row.key, &state)
        .await
        .map_err(|error| super::actor::storage(&error))?;
    let wall = (deps.wall)();
    let parked = parked(&state, Duration::from_millis(wall.ms_since(state.at)), &deps);
    let mut ring = VecDeque::new();
    let recent = deps
        .log
        .read_before(row.key, state.seq.0 + 1, RING_EVENTS.min(PAGE_ROWS))
        .await;
    let mut recent = recent.map_err(|error| super::actor::storage(&error))?;
    recent.reverse();
    extend_ring(&mut ring, recent.into_iter().filter_map(envelope).map(Arc::new));
    let project = deps
        .projects
        .load(std::path::Path::new(&state.root))
        .unwrap_or_else(|error| {
            // The next input is refused with the reason.
            tracing::warn!(%session, %error, "a project's file is not read");
            Project::default()
        });
    let (sender, mailbox) = mpsc::channel(MAILBOX);
    let sandbox = deps.standing.sandbox();
    let mut first = first_live(&state, &session, &details, parked, &sandbox);
    first.ring = Arc::new(ring.clone());
    let publisher = Publisher::new(first);
    let presence = Arc::new(Presence::default());
    let handle = Handle::new(sender, publisher.clone(), Arc::clone(&presence));
    let mut actor = Actor {
        session,
        key: row.key,
        clock: SessionClock::new(wall, state.at),
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

/// The jobs' table with the results that are still of interest.
async fn ended_jobs(deps: &Deps, session: SessionKey, state: &State) -> Result<Jobs, LogError> {
    let jobs = Jobs::default();
    for (_, seq) in &state.ended_jobs {
        for row in deps.log.read(session, seq.0.saturating_sub(1), 1).await? {
            if let Ok(Some(event)) = Event::parse(&row.kind, &row.body) {
                super::actor::note_end(&jobs, &event);
            }
        }
    }
    Ok(jobs)
}

/// The state at the head, and the environment commands run with.
async fn folded(deps: &Deps, row: &SessionRow) -> Result<(State, BTreeMap<String, String>), RpcError> {
    let storage = |error: LogError| super::actor::storage(&error);
    let saved = deps.log.saved_state(row.key).await.map_err(storage)?;
    let saved = saved.filter(|saved| saved.version == STATE_VERSION);
    let mut state: State = saved
        .and_then(|saved| serde_json::from_slice(&saved.bytes).ok())
        .unwrap_or_default();
    loop {
        let rows = deps.log.read(row.key, state.seq.0, PAGE_ROWS).await.map_err(storage)?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            fold(&mut state, &row)?;
        }
    }
    let environment = environment(deps, row).await.map_err(storage)?;
    Ok((state, environment))
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
async fn environment(deps: &Deps, row: &SessionRow) -> Result<BTreeMap<String, String>, LogError> {
    let mut nth = 1;
    loop {
        let changed = deps.log.seq_of_nth_last(row.key, "session.changed", nth).await?;
        let seq = changed.unwrap_or(1);
        let rows = deps.log.read(row.key, seq - 1, 1).await?;
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
