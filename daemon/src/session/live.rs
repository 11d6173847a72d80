//! What a session shows while it lives: its head, its last events, the text of what is still open. A subscription is a cursor over
//! this and the log, not a queue, so a slow one gets fewer and longer pieces and never holds anybody up.

use protocol::event::Envelope;
use protocol::frame::{ClientView, OpenType, Snapshot, Stream};
use protocol::{ItemId, Seq};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Committed events kept in memory for subscriptions that keep up; the rest is read from the log.
pub(crate) const RING_EVENTS: usize = 256;

/// Bytes of events the ring keeps, so that a few huge ones do not stay for long.
const RING_BYTES: usize = 4 << 20;

/// Bytes of a reply's open stream that are kept; of a longer one the front goes.
const OPEN_BYTES: usize = 4 << 20;

/// Bytes of a command's open output that are kept. It comes faster than anybody reads, and each client that falls behind
/// gets a copy of all that is kept.
const OPEN_OUTPUT_BYTES: usize = 1 << 20;

/// Bytes of open text in a snapshot.
const SNAPSHOT_TEXT_BYTES: usize = 64 << 10;

/// A session as a subscription sees it. Replaced whole at each commit, so head, ring and open items always belong together.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) head: Seq,
    pub(crate) ring: Arc<VecDeque<Arc<Envelope>>>,
    pub(crate) feeds: Vec<Arc<Feed>>,
    /// The snapshot at `head`, without what is open and who is there.
    pub(crate) snapshot: Arc<Snapshot>,
}

/// Publishes to all subscriptions of a session.
#[derive(Debug, Clone)]
pub(crate) struct Publisher(watch::Sender<Arc<Live>>);

impl Publisher {
    pub(crate) fn new(live: Live) -> Self {
        Self(watch::Sender::new(Arc::new(live)))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Live>> {
        self.0.subscribe()
    }

    pub(crate) fn watched(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn publish(&self, live: Live) {
        self.0.send_replace(Arc::new(live));
    }

    /// Wakes subscriptions: an open item grew.
    fn bump(&self) {
        self.0.send_modify(|_| {});
    }
}

/// Adds events to a ring within its bounds.
pub(crate) fn extend_ring(ring: &mut VecDeque<Arc<Envelope>>, events: impl IntoIterator<Item = Arc<Envelope>>) {
    ring.extend(events);
    let mut bytes: usize = ring.iter().map(|event| event.data.get().len()).sum();
    while ring.len() > RING_EVENTS || (bytes > RING_BYTES && ring.len() > 1) {
        bytes -= ring.pop_front().map_or(0, |event| event.data.get().len());
    }
}

/// What an effect shows while it works: the pieces of a reply, or the output of a call.
#[derive(Debug)]
pub(crate) struct Feed {
    streams: Mutex<Vec<OpenStream>>,
    frozen: AtomicBool,
    publisher: Publisher,
}

/// One open stream.
#[derive(Debug, Clone)]
pub(crate) struct OpenStream {
    pub(crate) item: ItemId,
    /// Place in the reply; 0 for output.
    pub(crate) index: usize,
    pub(crate) item_type: OpenType,
    pub(crate) stream: Stream,
    pub(crate) tool: Option<String>,
    text: String,
    /// Bytes that were dropped before `text`.
    dropped: u64,
}

/// More of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) offset: u64,
    pub(crate) text: String,
}

impl Feed {
    pub(crate) fn new(publisher: Publisher) -> Arc<Self> {
        Arc::new(Self {
            streams: Mutex::new(Vec::new()),
            frozen: AtomicBool::new(false),
            publisher,
        })
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<OpenStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A further stream is open.
    pub(crate) fn open(&self, item: ItemId, index: usize, item_type: OpenType, stream: Stream, tool: Option<String>) {
        let text = String::new();
        self.locked().push(OpenStream {
            item,
            index,
            item_type,
            stream,
            tool,
            text,
            dropped: 0,
        });
    }

    /// From now on nothing is shown any more.
    pub(crate) fn freeze(&self) {
        let _streams = self.locked();
        self.frozen.store(true, Ordering::SeqCst);
    }

    /// What was frozen in vain goes on.
    pub(crate) fn thaw(&self) {
        self.frozen.store(false, Ordering::SeqCst);
    }

    /// The stream at `index` of the reply, or the output, grew.
    pub(crate) fn push(&self, index: usize, text: &str) {
        let mut streams = self.locked();
        if self.frozen.load(Ordering::SeqCst) {
            return;
        }
        if let Some(open) = streams.iter_mut().find(|open| open.index == index) {
            open.text.push_str(text);
            let limit = match open.stream {
                Stream::Output => OPEN_OUTPUT_BYTES,
                Stream::Text | Stream::Arguments => OPEN_BYTES,
            };
            if open.text.len() > limit {
                let from = open.text.ceil_char_boundary(open.text.len() - limit / 2);
                open.text.drain(..from);
                open.dropped += from as u64;
            }
        }
        drop(streams);
        self.publisher.bump();
    }

    /// Calls `visit` with each open stream.
    pub(crate) fn each(&self, visit: impl FnMut(&OpenStream)) {
        self.locked().iter().for_each(visit);
    }

    /// The text shown so far, by place, for the pieces of a reply a model may be reminded of.
    pub(crate) fn shown(&self) -> Vec<(usize, OpenType, String)> {
        self.locked()
            .iter()
            .map(|open| (open.index, open.item_type, open.text.clone()))
            .collect()
    }
}

impl OpenStream {
    /// What lies behind `offset`; from the first byte that is kept if that is gone.
    pub(crate) fn after(&self, offset: u64) -> Option<Fragment> {
        let end = self.dropped + self.text.len() as u64;
        let offset = offset.max(self.dropped);
        let from = usize::try_from(offset - self.dropped).ok()?;
        let text = self.text.get(from..)?.to_owned();
        (offset < end).then_some(Fragment { offset, text })
    }

    /// Its last 64 KiB.
    pub(crate) fn last(&self) -> Fragment {
        let from = self
            .text
            .ceil_char_boundary(self.text.len().saturating_sub(SNAPSHOT_TEXT_BYTES));
        let text = self.text.get(from..).unwrap_or_default().to_owned();
        Fragment {
            offset: self.dropped + from as u64,
            text,
        }
    }
}

/// Who is attached to a session, and who of them can answer.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    clients: Mutex<Attached>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Attached {
    joined: u64,
    clients: Vec<(u64, ClientView, Answers)>,
}

/// Whether a client can answer approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    Yes,
    No,
}

impl Presence {
    fn locked(&self) -> std::sync::MutexGuard<'_, Attached> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client came; it is gone when the guard is dropped.
    pub(crate) fn join(self: &Arc<Self>, client: ClientView, answers: Answers) -> Present {
        let mut attached = self.locked();
        attached.joined += 1;
        let number = attached.joined;
        attached.clients.push((number, client, answers));
        drop(attached);
        self.changed.send_replace(());
        Present {
            presence: Arc::clone(self),
            number,
        }
    }

    pub(crate) fn clients(&self) -> Vec<ClientView> {
        self.locked()
            .clients
            .iter()
            .map(|(_, client, _)| client.clone())
            .collect()
    }

    /// Whether somebody who can answer is there.
    pub(crate) fn can_answer(&self) -> bool {
        self.locked()
            .clients
            .iter()
            .any(|(_, _, answers)| *answers == Answers::Yes)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

/// A client's being there.
#[derive(Debug)]
pub(crate) struct Present {
    presence: Arc<Presence>,
    number: u64,
}

impl Drop for Present {
    fn drop(&mut self) {
        self.presence
            .locked()
            .clients
            .retain(|(number, _, _)| *number != self.number);
        self.presence.changed.send_replace(());
    }
}
