//! `session.attach`: a cursor over a session's log and what is open in it. History on request, one snapshot of exactly the head, then
//! live. Waiting for a slow peer holds nobody up: when it takes again, it gets what is there by then.

use super::Api;
use super::client::Client;
use crate::log::{EventLog, LogError, PAGE_ROWS, SessionKey};
use crate::session::{Answers, Handle, Live, Message, envelope, storage};
use jsonrpsee::core::server::{PendingSubscriptionSink, SubscriptionSink};
use jsonrpsee::types::ErrorObjectOwned;
use protocol::event::{Envelope, Event};
use protocol::frame::{ClientView, Delta, End, EndReason, OpenItem, OpenType, Presence, Role, Snapshot, Stream};
use protocol::method::AttachParams;
use protocol::{ErrorKind, Frame, ItemId, RpcError, Seq, SessionId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Pause before a session that could not be opened again is tried once more.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// Why a subscription is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The peer is gone, or wants no more: nobody is left to be told.
    Left,
    /// The peer is told why.
    Because(EndReason),
}

impl From<EndReason> for Over {
    fn from(reason: EndReason) -> Self {
        Self::Because(reason)
    }
}

pub(super) async fn attach(api: Arc<Api>, client: Arc<Client>, params: AttachParams, pending: PendingSubscriptionSink) {
    let begun = begin(&api, &params).await;
    let (session, key, handle, cursor) = match begun {
        Ok(begun) => begun,
        Err(error) => return pending.reject(ErrorObjectOwned::from(error)).await,
    };
    let Ok(sink) = pending.accept().await else { return };
    let introduced = client.introduced();
    if introduced.role == Role::Controller && !introduced.environment.is_empty() {
        // Only between turns, and a session that is busy just keeps what it has.
        let _ = handle.tell(Message::Refresh(introduced.environment.clone(), client.by()));
    }
    let deltas = if params.deltas { Deltas::Wanted } else { Deltas::Not };
    let stage = Stage::History;
    let answers = if introduced.answers { Answers::Yes } else { Answers::No };
    let follow = Follow {
        api,
        session,
        key,
        sink,
        cursor,
        deltas,
        stage,
        sent: HashMap::new(),
        shown: Vec::new(),
    };
    follow.run(handle, client.view(), answers).await;
}

async fn begin(api: &Api, params: &AttachParams) -> Result<(SessionId, SessionKey, Handle, Seq), RpcError> {
    let row = api.find(&params.session, None).await?;
    let session = SessionId(row.id);
    let handle = api.registry.open(&session).await?;
    let head = handle.live().borrow().head;
    let cursor = match (params.after_seq, params.tail) {
        (Some(_), Some(_)) => {
            return Err(RpcError::new(
                ErrorKind::InvalidParams,
                "name at most one of `after_seq` and `tail`",
            ));
        }
        (Some(seq), None) if seq > head => {
            return Err(RpcError::new(
                ErrorKind::CursorAhead,
                format!("event {seq} lies beyond the head, {head}"),
            )
            .hint("attach with what you have read, or from 0")
            .with("head", head));
        }
        (Some(seq), None) => seq,
        (None, Some(0)) | (None, None) => head,
        (None, Some(turns)) => before_turns(&api.registry.deps().log, row.key, turns)
            .await
            .map_err(|error| storage(&error))?,
    };
    Ok((session, row.key, handle, cursor))
}

/// Just before the input of the turn that is so many turns back; before everything if there are fewer.
async fn before_turns(log: &EventLog, session: SessionKey, turns: u32) -> Result<Seq, LogError> {
    let Some(started) = log.seq_of_nth_last(session, "turn.started", u64::from(turns)).await? else {
        return Ok(Seq(0));
    };
    let delivered = log.read(session, started, 1).await?;
    let input = delivered
        .first()
        .and_then(|row| match Event::parse(&row.kind, &row.body) {
            Ok(Some(Event::InputDelivered(delivered))) => Some(delivered.input_id),
            _ => None,
        });
    let accepted = match input {
        Some(input) => log.find_input(session, &input.0).await?.map_or(started, |row| row.seq),
        None => started,
    };
    Ok(Seq(accepted.min(started).saturating_sub(1)))
}

/// Whether the text of open items is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deltas {
    Wanted,
    Not,
}

/// Whether the snapshot was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    History,
    Live,
}

/// A subscription under way.
struct Follow {
    api: Arc<Api>,
    session: SessionId,
    key: SessionKey,
    sink: SubscriptionSink,
    /// The last event that was sent.
    cursor: Seq,
    deltas: Deltas,
    stage: Stage,
    /// Bytes sent of each open stream.
    sent: HashMap<(ItemId, Stream), u64>,
    /// The clients that were last shown.
    shown: Vec<ClientView>,
}

impl Follow {
    async fn run(mut self, mut handle: Handle, view: ClientView, answers: Answers) {
        loop {
            let present = handle.presence.join(view.clone(), answers);
            let followed = self.follow(&handle).await;
            drop(present);
            // The actor is gone: passivated, deleted, or dropped after a failed append.
            let reopened = match followed {
                Ok(()) => self.reopen().await,
                Err(over) => Err(over),
            };
            handle = match reopened {
                Ok(handle) => handle,
                Err(Over::Left) => return,
                Err(Over::Because(reason)) => return self.end(reason).await,
            };
        }
    }

    async fn reopen(&self) -> Result<Handle, Over> {
        loop {
            match self.api.registry.open(&self.session).await {
                Ok(handle) => return Ok(handle),
                Err(error) => match error.kind {
                    ErrorKind::SessionNotFound => return Err(EndReason::Deleted.into()),
                    ErrorKind::Draining => return Err(EndReason::Shutdown.into()),
                    ErrorKind::SessionUnreadable => return Err(EndReason::Unreadable.into()),
                    _ => {}
                },
            }
            tokio::select! {
                () = self.sink.closed() => return Err(Over::Left),
                () = tokio::time::sleep(REOPEN_PAUSE) => {}
            }
        }
    }

    async fn end(self, reason: EndReason) {
        let frame = Frame::End(End {
            reason,
            resume_after: self.cursor,
        });
        let _ = self.send(&frame).await;
    }

    /// Sends what there is until the actor is gone.
    async fn follow(&mut self, handle: &Handle) -> Result<(), Over> {
        let mut live = handle.live();
        let mut presence = handle.presence.watch();
        loop {
            let now = Arc::clone(&live.borrow_and_update());
            self.send_events(&now).await?;
            match self.stage {
                Stage::History => self.send_snapshot(&now, handle).await?,
                Stage::Live => {
                    self.send_presence(handle).await?;
                    self.send_deltas(&now).await?;
                }
            }
            tokio::select! {
                () = self.sink.closed() => return Err(Over::Left),
                changed = handle.changed(&mut live) => if changed.is_err() {
                    return Ok(());
                },
                _ = presence.changed() => {}
            }
        }
    }

    async fn send_events(&mut self, live: &Live) -> Result<(), Over> {
        while self.cursor < live.head {
            let first = live.ring.front().map(|event| event.seq);
            if first.is_some_and(|first| first <= self.cursor.next()) {
                let skip = first.map_or(0, |first| self.cursor.next().0 - first.0);
                for event in live.ring.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)) {
                    self.send_event(event).await?;
                }
                continue;
            }
            let rows = self
                .api
                .registry
                .deps()
                .log
                .read(self.key, self.cursor.0, PAGE_ROWS)
                .await
                .map_err(|error| self.failed(&error))?;
            if rows.is_empty() {
                return Err(self.unreadable());
            }
            for row in rows {
                // A log without a gap has exactly the next event here, and JSON in it.
                let event = envelope(row).filter(|event| event.seq == self.cursor.next());
                let event = event.ok_or_else(|| self.unreadable())?;
                if event.seq > live.head {
                    break;
                }
                self.send_event(&event).await?;
            }
        }
        Ok(())
    }

    fn failed(&self, error: &LogError) -> Over {
        tracing::error!(session = %self.session, %error, "a subscription ends: the log cannot be read");
        EndReason::Storage.into()
    }

    fn unreadable(&self) -> Over {
        let after = self.cursor;
        tracing::error!(session = %self.session, %after, "a subscription ends: the next event cannot be read");
        EndReason::Unreadable.into()
    }

    async fn send_event(&mut self, event: &Envelope) -> Result<(), Over> {
        if self.stage == Stage::Live && self.deltas == Deltas::Wanted {
            self.complete_item(event).await?;
        }
        self.send(&Frame::Event(event.clone())).await?;
        self.cursor = event.seq;
        Ok(())
    }

    /// Before an item's closing event comes the rest of its text, so that deltas and snapshot add up to it.
    async fn complete_item(&mut self, event: &Envelope) -> Result<(), Over> {
        match event.kind.as_str() {
            "item.completed" => {
                let Some(Event::ItemCompleted(item)) = event.event() else {
                    return Ok(());
                };
                let sent = self.sent.remove(&(item.item.clone(), Stream::Text)).unwrap_or(0);
                let rest = usize::try_from(sent)
                    .ok()
                    .and_then(|sent| item.text.get(sent..))
                    .unwrap_or_default();
                if !rest.is_empty() {
                    let (item_type, stream) = (OpenType::from(item.item_type), Stream::Text);
                    let delta = Delta {
                        item: item.item,
                        item_type,
                        stream,
                        offset: sent,
                        text: rest.to_owned(),
                        tool: None,
                    };
                    self.send(&Frame::Delta(delta)).await?;
                }
            }
            "tool.completed" => {
                if let Some(Event::ToolCompleted(completed)) = event.event() {
                    self.sent.remove(&(ItemId(completed.call.0), Stream::Output));
                }
            }
            "job.ended" => {
                if let Some(Event::JobEnded(ended)) = event.event() {
                    self.sent.remove(&(ItemId::job(&ended.job), Stream::Output));
                }
            }
            "step.started" | "turn.completed" => self.sent.retain(|(item, _), _| item.is_job()),
            _ => {}
        }
        Ok(())
    }

    async fn send_snapshot(&mut self, live: &Live, handle: &Handle) -> Result<(), Over> {
        let mut snapshot = Snapshot::clone(&live.snapshot);
        for feed in &live.feeds {
            feed.each(|open| {
                let last = open.last();
                self.sent
                    .insert((open.item.clone(), open.stream), last.offset + last.text.len() as u64);
                snapshot.open.push(OpenItem {
                    item: open.item.clone(),
                    item_type: open.item_type,
                    stream: open.stream,
                    offset: last.offset,
                    text: last.text,
                    tool: open.tool.clone(),
                });
            });
        }
        self.shown = handle.presence.clients();
        snapshot.presence.clone_from(&self.shown);
        self.stage = Stage::Live;
        self.send(&Frame::Snapshot(Box::new(snapshot))).await
    }

    async fn send_presence(&mut self, handle: &Handle) -> Result<(), Over> {
        let clients = handle.presence.clients();
        if clients == self.shown {
            return Ok(());
        }
        self.shown.clone_from(&clients);
        self.send(&Frame::Presence(Presence { clients })).await
    }

    async fn send_deltas(&mut self, live: &Live) -> Result<(), Over> {
        if self.deltas == Deltas::Not {
            return Ok(());
        }
        let mut grown = Vec::new();
        for feed in &live.feeds {
            feed.each(|open| {
                let sent = self.sent.entry((open.item.clone(), open.stream)).or_default();
                if let Some(more) = open.after(*sent) {
                    *sent = more.offset + more.text.len() as u64;
                    grown.push(Delta {
                        item: open.item.clone(),
                        item_type: open.item_type,
                        stream: open.stream,
                        offset: more.offset,
                        text: more.text,
                        tool: open.tool.clone(),
                    });
                }
            });
        }
        for delta in grown {
            self.send(&Frame::Delta(delta)).await?;
        }
        Ok(())
    }

    async fn send(&self, frame: &Frame) -> Result<(), Over> {
        let json = serde_json::value::to_raw_value(frame).map_err(|error| {
            tracing::error!(session = %self.session, %error, "a subscription ends: a frame cannot be written as JSON");
            Over::from(EndReason::Unreadable)
        })?;
        self.sink.send(json).await.map_err(|_| Over::Left)
    }
}
