//! Which sessions live, by id. Opening is shared: whoever asks first starts it, everybody waits for the same result, and a new actor
//! is started only after the old one is gone. No slow work, no lock held across an await.

use super::commit::BACKGROUND;
use super::deps::Deps;
use super::drain::Draining;
use super::handle::{Handle, Message, Reply, Tell, busy};
use super::look::look;
use super::open::{Opened, open};
use crate::log::SessionRow;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use protocol::frame::{Phase, Snapshot};
use protocol::{ErrorKind, RpcError, SessionId, Time};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Sessions resumed a second after a start.
const RESUMES_PER_SECOND: u32 = 4;

/// Times a request is put to a session whose actor ends just then.
const TRIES: u32 = 3;

type Opening = Shared<BoxFuture<'static, Result<Handle, RpcError>>>;

/// The living sessions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Registry {
    deps: Arc<Deps>,
    slots: Arc<Mutex<HashMap<SessionId, Slot>>>,
    closed: Arc<AtomicBool>,
}

struct Slot {
    opening: Opening,
    /// Ends when the slot's actor is gone.
    task: Arc<Mutex<Option<tokio::task::JoinHandle<()>>>>,
}

impl Slot {
    /// Whether its session lives no more, and nothing of it is left to wait for.
    fn over(&self) -> bool {
        let ended = || {
            self.task
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .as_ref()
                .is_none_or(tokio::task::JoinHandle::is_finished)
        };
        matches!(self.opening.peek(), Some(Ok(handle)) if !handle.alive()) && ended()
    }
}

impl Registry {
    pub(crate) fn new(deps: Arc<Deps>) -> Self {
        Self {
            deps,
            slots: Arc::default(),
            closed: Arc::default(),
        }
    }

    pub(crate) fn deps(&self) -> &Deps {
        &self.deps
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's handle; opens it if it does not live.
    ///
    /// # Errors
    /// No such session, a log that cannot be read, storage that fails, or a daemon that stops.
    pub(crate) async fn open(&self, session: &SessionId) -> Result<Handle, RpcError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(draining());
        }
        let opening = self.opening(session);
        let opened = opening.await;
        if opened.is_err() {
            self.locked()
                .retain(|id, slot| id != session || !matches!(slot.opening.peek(), Some(Err(_))));
        }
        opened
    }

    fn opening(&self, session: &SessionId) -> Opening {
        let mut slots = self.locked();
        slots.retain(|id, slot| id == session || !slot.over());
        let before = slots.get(session);
        if let Some(slot) = before {
            match slot.opening.peek() {
                None => return slot.opening.clone(),
                Some(Ok(handle)) if handle.alive() => return slot.opening.clone(),
                _ => {}
            }
        }
        let old = before.and_then(|slot| slot.task.lock().unwrap_or_else(PoisonError::into_inner).take());
        let task = Arc::new(Mutex::new(None));
        let (deps, id, home) = (Arc::clone(&self.deps), session.clone(), Arc::clone(&task));
        let opening = async move {
            if let Some(old) = old {
                // A panic of the old actor is in the log already; its session is read anew.
                let _ = old.await;
            }
            let row = deps
                .log
                .session(&id.0)
                .await
                .map_err(|error| super::actor::storage(&error))?;
            let row = row
                .filter(|row| row.deleted_at_ms.is_none())
                .ok_or_else(|| not_found(&id.0))?;
            let Opened { handle, task } = open(deps, row).await?;
            *home.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
            Ok(handle)
        };
        let opening = opening.boxed().shared();
        slots.insert(
            session.clone(),
            Slot {
                opening: opening.clone(),
                task,
            },
        );
        opening
    }

    /// Puts a request to a session and waits for its answer.
    ///
    /// # Errors
    /// The session's own, and those of `open`.
    pub(crate) async fn ask<T>(
        &self,
        session: &SessionId,
        message: impl Fn(Reply<T>) -> Message,
    ) -> Result<T, RpcError> {
        for _ in 0..TRIES {
            let handle = self.open(session).await?;
            let (reply, answer) = oneshot::channel();
            match handle.tell(message(reply)) {
                Ok(()) => {}
                Err(Tell::Busy(error)) => return Err(error),
                Err(Tell::Gone) => continue,
            }
            // An actor that ends without an answer has not touched the request.
            if let Ok(answer) = answer.await {
                return answer;
            }
        }
        Err(busy())
    }

    /// Handles of the sessions that live.
    pub(crate) fn living(&self) -> Vec<Handle> {
        let slots = self.locked();
        let handles = slots
            .values()
            .filter_map(|slot| slot.opening.peek()?.as_ref().ok().cloned());
        handles.filter(Handle::alive).collect()
    }

    /// The session's handle, if it lives.
    pub(crate) fn living_one(&self, session: &SessionId) -> Option<Handle> {
        let handle = self.locked().get(session)?.opening.peek()?.as_ref().ok().cloned();
        handle.filter(Handle::alive)
    }

    /// The session as it stands, without opening it.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub(crate) async fn look(&self, row: &SessionRow) -> Result<Arc<Snapshot>, RpcError> {
        match self.living_one(&SessionId(row.id.clone())) {
            Some(handle) => Ok(Arc::clone(&handle.live().borrow().snapshot)),
            None => look(&self.deps, row).await.map(Arc::new),
        }
    }

    /// Goes on with what an earlier life left unfinished, a few sessions a second. A turn that waits for somebody stays in the store.
    pub(crate) async fn resume(&self, unfinished: Vec<SessionRow>) {
        for row in unfinished {
            let age = (self.deps.clocks.wall)().ms_since(Time(row.updated_at_ms));
            if row.phase != Phase::Idle.as_str()
                && row.phase != BACKGROUND
                && self.deps.tuning.parks(Duration::from_millis(age))
            {
                continue;
            }
            let session = SessionId(row.id);
            if self.deps.drain.state() == Draining::Yes {
                return;
            }
            if let Err(error) = self.open(&session).await {
                tracing::warn!(%session, %error, "a session does not go on");
            }
            tokio::time::sleep(Duration::from_secs(1) / RESUMES_PER_SECOND).await;
        }
    }

    /// Ends a session's actor; nothing is started for it until it is opened again.
    pub(crate) async fn close(&self, session: &SessionId) {
        let slot = self.locked().remove(session);
        let Some(slot) = slot else { return };
        if let Ok(handle) = slot.opening.await {
            let (reply, done) = oneshot::channel();
            handle.close(reply).await;
            let _ = done.await;
        }
        let task = slot.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }

    /// Ends all actors and opens none any more.
    pub(crate) async fn shutdown(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let sessions: Vec<SessionId> = self.locked().keys().cloned().collect();
        futures::future::join_all(sessions.iter().map(|session| self.close(session))).await;
    }
}

/// No such session.
pub(crate) fn not_found(text: &str) -> RpcError {
    RpcError::new(ErrorKind::SessionNotFound, format!("there is no session {text}"))
        .hint("agentctl ls -a lists them all")
}

/// The daemon stops.
pub(crate) fn draining() -> RpcError {
    RpcError::new(ErrorKind::Draining, "the daemon is about to stop")
        .hint("try again in a moment; the next daemon goes on")
}
