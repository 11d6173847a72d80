//! The values that go into the log and come out of it. The log knows rows; what an event means is the session's.

use super::approvals::ApprovalChange;

/// The log's own number of a session (`sessions.n`); clients know the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub i64);

/// A session to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// UUIDv7, unique for ever.
    pub id: String,
    /// A name people type; unique among sessions that are not deleted.
    pub name: Option<String>,
    /// The session whose call made this one.
    pub parent: Option<SessionKey>,
    /// Directory of the project.
    pub root_path: String,
    /// Directory commands start in.
    pub cwd: String,
    /// Milliseconds since 1970, UTC.
    pub created_at_ms: i64,
    /// How long it is meant to live.
    pub lifetime: Lifetime,
}

/// How long a session is meant to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until someone deletes it.
    Kept,
    /// A throw-away session: not in lists, gone after a day.
    Ephemeral,
}

/// Rows and what changes with them, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The session; `create` ignores it.
    pub session: SessionKey,
    /// Seq of the first new row; it must follow the log's last one. 1 for `create`.
    pub expected_seq: u64,
    /// The new rows, seqs counting up from `expected_seq`. May be empty: then only the columns change.
    pub rows: Vec<NewRow>,
    /// Columns of the session that change.
    pub columns: Columns,
    /// Approvals requested or resolved by these rows.
    pub approvals: Vec<ApprovalChange>,
}

/// One event to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRow {
    /// `turn.started`, …
    pub kind: &'static str,
    /// Milliseconds since 1970, UTC.
    pub at_ms: i64,
    /// JSON of the event's data.
    pub body: String,
    /// What only the daemon reads: environments, provider state.
    pub private: Option<Vec<u8>>,
}

/// Columns of the session's row; `None` leaves a column as it is. `head`, `changed_pos` and `updated_at` follow the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// Phase of the turn machine. A session counts as unfinished while it is not `idle`.
    pub phase: Option<&'static str>,
    /// Number of inputs that wait.
    pub queued: Option<u32>,
    /// The name people type.
    pub name: Option<String>,
    /// The title lists show.
    pub title: Option<String>,
    /// The model profile.
    pub model: Option<String>,
    /// The approval mode.
    pub mode: Option<String>,
    /// Outcome of the last turn.
    pub outcome: Option<String>,
    /// Directory commands start in.
    pub cwd: Option<String>,
    /// Whether lists hide the session.
    pub archived: Option<bool>,
    /// Directories it works in beside its project, as a JSON array of texts.
    pub added_roots: Option<String>,
    /// The fold of the log.
    pub state: Option<SavedState>,
}

/// A stored fold of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// The state, in the session's own encoding.
    pub bytes: Vec<u8>,
    /// Seq of the last event folded into it.
    pub seq: u64,
    /// Version of the encoding.
    pub version: u32,
}

/// Where an append landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The session, new or given.
    pub session: SessionKey,
    /// Pos of the first row; those of the others follow it without gap. Meaningless when there was no row.
    pub first_pos: u64,
    /// The rows, handed back: whoever shows them needs no copy of their own.
    pub rows: Vec<NewRow>,
}

/// One event of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Number within the session, gapless from 1.
    pub seq: u64,
    /// Number over all sessions, in the order of commits, not gapless.
    pub pos: u64,
    /// Milliseconds since 1970, UTC.
    pub at_ms: i64,
    /// `turn.started`, …
    pub kind: String,
    /// JSON of the event's data.
    pub body: String,
    /// What only the daemon reads.
    pub private: Option<Vec<u8>>,
}

impl Append {
    /// Bytes this append keeps in the writer's queue.
    pub(super) fn bytes(&self) -> usize {
        let state = self.columns.state.as_ref().map_or(0, |state| state.bytes.len());
        self.rows.iter().map(NewRow::bytes).sum::<usize>() + state
    }
}

impl NewRow {
    /// Bytes of a row beside its text: keys, index entries.
    const OVERHEAD_BYTES: usize = 64;

    fn bytes(&self) -> usize {
        self.body.len() + self.private.as_ref().map_or(0, Vec::len) + Self::OVERHEAD_BYTES
    }
}

impl Row {
    pub(super) fn bytes(&self) -> usize {
        self.body.len() + self.private.as_ref().map_or(0, Vec::len)
    }

    /// Reads columns `seq, pos, at, kind, body, private`, starting at column `first`.
    pub(super) fn from_columns(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(first)?,
            pos: row.get(first + 1)?,
            at_ms: row.get(first + 2)?,
            kind: row.get(first + 3)?,
            body: row.get(first + 4)?,
            private: row.get(first + 5)?,
        })
    }
}
