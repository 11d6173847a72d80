//! The sessions' own rows: lists, and finding the session a person means.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, named_params, params};

use super::error::LogError;
use super::rows::{Lifetime, SavedState, SessionKey};

/// Most sessions a list returns.
pub const SESSION_PAGE: usize = 200;

/// Fewest letters of an id that stand for it.
pub const SHORTEST_PART: usize = 4;

/// Most candidates named when a reference is ambiguous.
const CANDIDATES: usize = 10;

/// A session as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The log's number of it.
    pub key: SessionKey,
    /// UUIDv7.
    pub id: String,
    /// The name people type.
    pub name: Option<String>,
    /// Topmost ancestor; itself where it has no parent.
    pub root: SessionKey,
    /// The session whose call made this one.
    pub parent: Option<SessionKey>,
    /// Phase of the turn machine.
    pub phase: String,
    /// Seq of its last event.
    pub head: u64,
    /// Pos of its last event: the order of use, and the cursor of lists.
    pub changed_pos: u64,
    /// Number of inputs that wait.
    pub queued: u32,
    /// The title lists show.
    pub title: Option<String>,
    /// The model profile.
    pub model: Option<String>,
    /// The approval mode.
    pub mode: Option<String>,
    /// Outcome of the last turn.
    pub outcome: Option<String>,
    /// Directory of the project.
    pub root_path: String,
    /// Directory commands start in.
    pub cwd: String,
    /// Milliseconds since 1970, UTC.
    pub created_at_ms: i64,
    /// Time of the last event, milliseconds since 1970, UTC.
    pub updated_at_ms: i64,
    /// How long it is meant to live.
    pub lifetime: Lifetime,
    /// Whether lists hide it.
    pub archived: bool,
    /// When it was deleted, milliseconds since 1970, UTC.
    pub deleted_at_ms: Option<i64>,
    /// Approvals that wait, its own and its descendants'.
    pub waiting_approvals: u32,
    /// Directories it works in beside its project, as a JSON array of texts; none: it has none.
    pub added_roots: Option<String>,
}

/// Which sessions to list, newest use first. The default: all that `ls` shows, of every project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those of this project directory.
    pub root_path: Option<String>,
    /// Children of other sessions too.
    pub children: bool,
    /// Throw-away sessions too.
    pub ephemeral: bool,
    /// Archived sessions too.
    pub archived: bool,
    /// Deleted sessions too.
    pub deleted: bool,
    /// Only those in a turn or with inputs that wait: what a restart looks at.
    pub unfinished: bool,
    /// Goes on after a page: `changed_pos` of its last row.
    pub before_pos: Option<u64>,
    /// Rows wanted, at most `SESSION_PAGE`; 0 means that many.
    pub limit: usize,
}

/// Which session a person's reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// This one.
    One(Box<SessionRow>),
    /// Several; the newest of them.
    Ambiguous(Vec<SessionRow>),
    /// None. For `last`: the newest sessions of other projects.
    None {
        /// Sessions to propose instead.
        elsewhere: Vec<SessionRow>,
    },
}

const COLUMNS: &str = "SELECT n, id, name, root, parent, phase, head, changed_pos, queued, title, model, mode, outcome,
      root_path, cwd, created_at, updated_at, ephemeral, archived, deleted_at,
      (SELECT count(*) FROM approvals a WHERE a.resolved_pos IS NULL AND a.root = sessions.root AND (a.session = n
         OR n = sessions.root OR '/' || a.path || '/' LIKE '%/' || sessions.id || '/%')), added_roots
    FROM sessions";

fn from_row(row: &SqlRow<'_>) -> rusqlite::Result<SessionRow> {
    let parent: Option<i64> = row.get(4)?;
    let ephemeral: bool = row.get(17)?;
    Ok(SessionRow {
        key: SessionKey(row.get(0)?),
        id: row.get(1)?,
        name: row.get(2)?,
        root: SessionKey(row.get(3)?),
        parent: parent.map(SessionKey),
        phase: row.get(5)?,
        head: row.get(6)?,
        changed_pos: row.get(7)?,
        queued: row.get(8)?,
        title: row.get(9)?,
        model: row.get(10)?,
        mode: row.get(11)?,
        outcome: row.get(12)?,
        root_path: row.get(13)?,
        cwd: row.get(14)?,
        created_at_ms: row.get(15)?,
        updated_at_ms: row.get(16)?,
        lifetime: if ephemeral { Lifetime::Ephemeral } else { Lifetime::Kept },
        archived: row.get(18)?,
        deleted_at_ms: row.get(19)?,
        waiting_approvals: row.get(20)?,
        added_roots: row.get(21)?,
    })
}

/// The session with this whole id, deleted or not.
pub(super) fn by_id(connection: &Connection, id: &str) -> Result<Option<SessionRow>, LogError> {
    let sql = format!("{COLUMNS} WHERE id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([id], from_row).optional()?)
}

/// The session of this key, deleted or not.
pub(super) fn by_key(connection: &Connection, session: SessionKey) -> Result<Option<SessionRow>, LogError> {
    let sql = format!("{COLUMNS} WHERE n = ?1");
    Ok(connection
        .prepare_cached(&sql)?
        .query_row([session.0], from_row)
        .optional()?)
}

/// A page of sessions, newest use first.
pub(super) fn list(connection: &Connection, filter: &SessionFilter) -> Result<Vec<SessionRow>, LogError> {
    let limit = if filter.limit == 0 {
        SESSION_PAGE
    } else {
        filter.limit.min(SESSION_PAGE)
    };
    let sql = format!(
        "{COLUMNS} WHERE (:root_path IS NULL OR root_path = :root_path) AND (:children OR parent IS NULL)
           AND (:ephemeral OR NOT ephemeral) AND (:archived OR NOT archived) AND (:deleted OR deleted_at IS NULL)
           AND (NOT :unfinished OR phase <> 'idle' OR queued > 0) AND (:before IS NULL OR changed_pos < :before)
         ORDER BY changed_pos DESC LIMIT :limit"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(
        named_params! {
            ":root_path": filter.root_path,
            ":children": filter.children,
            ":ephemeral": filter.ephemeral,
            ":archived": filter.archived,
            ":deleted": filter.deleted,
            ":unfinished": filter.unfinished,
            ":before": filter.before_pos,
            ":limit": limit,
        },
        from_row,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The session's stored state.
pub(super) fn state(connection: &Connection, session: SessionKey) -> Result<Option<SavedState>, LogError> {
    let sql = "SELECT state, state_seq, state_version FROM sessions WHERE n = ?1 AND state IS NOT NULL";
    let read = |row: &SqlRow<'_>| {
        Ok(SavedState {
            bytes: row.get(0)?,
            seq: row.get(1)?,
            version: row.get(2)?,
        })
    };
    Ok(connection
        .prepare_cached(sql)?
        .query_row([session.0], read)
        .optional()?)
}

/// Finds what a person typed: a whole id, a name, `last` (the newest session of `root_path`), or a beginning or end of an
/// id. Deleted sessions are found by their id alone.
pub(super) fn resolve(connection: &Connection, text: &str, root_path: Option<&str>) -> Result<Resolved, LogError> {
    if let Some(row) = by_id(connection, text)? {
        return Ok(Resolved::One(Box::new(row)));
    }
    if let Some(row) = by_name(connection, text)? {
        return Ok(Resolved::One(Box::new(row)));
    }
    if text == "last" {
        return last(connection, root_path);
    }
    by_part(connection, text)
}

fn by_name(connection: &Connection, name: &str) -> Result<Option<SessionRow>, LogError> {
    let sql = format!("{COLUMNS} WHERE name = ?1 AND deleted_at IS NULL");
    Ok(connection
        .prepare_cached(&sql)?
        .query_row([name], from_row)
        .optional()?)
}

fn last(connection: &Connection, root_path: Option<&str>) -> Result<Resolved, LogError> {
    let here = SessionFilter {
        root_path: root_path.map(str::to_owned),
        limit: 1,
        ..SessionFilter::default()
    };
    if let Some(row) = list(connection, &here)?.pop() {
        return Ok(Resolved::One(Box::new(row)));
    }
    let elsewhere = list(
        connection,
        &SessionFilter {
            limit: CANDIDATES,
            ..SessionFilter::default()
        },
    )?;
    Ok(Resolved::None { elsewhere })
}

/// Ids are compared without their dashes, so that a part may span one.
fn by_part(connection: &Connection, text: &str) -> Result<Resolved, LogError> {
    let part: String = text
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let nothing = Resolved::None { elsewhere: Vec::new() };
    if part.len() < SHORTEST_PART || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(nothing);
    }
    let sql = format!(
        "{COLUMNS} WHERE n IN (SELECT n FROM sessions
           WHERE replace(id, '-', '') LIKE ?1 || '%' OR replace(id, '-', '') LIKE '%' || ?1)
         AND deleted_at IS NULL ORDER BY changed_pos DESC LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![part, CANDIDATES], from_row)?;
    let mut rows: Vec<SessionRow> = rows.collect::<Result<_, _>>()?;
    Ok(match (rows.pop(), rows.is_empty()) {
        (None, _) => nothing,
        (Some(row), true) => Resolved::One(Box::new(row)),
        (Some(row), false) => {
            rows.push(row);
            Resolved::Ambiguous(rows)
        }
    })
}
