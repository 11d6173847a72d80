//! The approvals of all sessions as one table: which wait, and where in the log each was asked and settled. It is kept by
//! the appends that carry the events, so it is never behind them.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::error::LogError;
use super::rows::{Row, SessionKey};

/// Most approvals a list returns.
pub const APPROVAL_PAGE: usize = 200;

/// Most settled approvals a list returns: what a person may still have on the screen.
pub(super) const SETTLED_PAGE: usize = 50;

/// What one append does to approvals. `row` is the index, in the append's rows, of the event that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalChange {
    /// A question was asked.
    Requested {
        /// Id of the approval.
        id: String,
        /// Index of its `approval.requested` row.
        row: usize,
    },
    /// A question was settled.
    Resolved {
        /// Id of the approval.
        id: String,
        /// Index of its `approval.resolved` row.
        row: usize,
    },
}

/// Which approvals to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// Only those of this session and its descendants; `None`: of all sessions.
    pub below: Option<SessionKey>,
    /// Whether settled ones are listed too.
    pub settled: Settled,
    /// Only those asked after this pos.
    pub after_pos: u64,
}

/// Whether settled approvals are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Settled {
    /// Only those that wait.
    #[default]
    Without,
    /// All.
    With,
    /// Only those that are settled, the newest question first.
    Only,
}

/// An approval and where it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// Id of the approval.
    pub id: String,
    /// The session that asks.
    pub session: SessionKey,
    /// Id of that session.
    pub session_id: String,
    /// Ids from the root session down to the asking one.
    pub path: Vec<String>,
    /// Its `approval.requested` event.
    pub requested: Row,
    /// Pos of its `approval.resolved` event, if there is one.
    pub resolved_pos: Option<u64>,
}

pub(super) fn apply(
    connection: &Connection,
    session: SessionKey,
    change: &ApprovalChange,
    rows: usize,
    first_pos: u64,
) -> Result<(), LogError> {
    let (ApprovalChange::Requested { row, .. } | ApprovalChange::Resolved { row, .. }) = change;
    if *row >= rows {
        return Err(LogError::Refused("an approval names a row the append does not have"));
    }
    let pos = first_pos + *row as u64;
    match change {
        ApprovalChange::Requested { id, .. } => request(connection, session, id, pos),
        ApprovalChange::Resolved { id, .. } => resolve(connection, session, id, pos),
    }
}

fn request(connection: &Connection, session: SessionKey, id: &str, pos: u64) -> Result<(), LogError> {
    let sql = "WITH RECURSIVE up(n, path) AS (
          SELECT n, id FROM sessions WHERE n = ?2
          UNION ALL
          SELECT parent.n, parent.id || '/' || up.path
          FROM up JOIN sessions child ON child.n = up.n JOIN sessions parent ON parent.n = child.parent)
        INSERT INTO approvals (id, session, root, path, requested_pos)
        SELECT ?1, s.n, s.root, (SELECT path FROM up ORDER BY length(path) DESC LIMIT 1), ?3
        FROM sessions s WHERE s.n = ?2";
    connection.prepare_cached(sql)?.execute(params![id, session.0, pos])?;
    Ok(())
}

fn resolve(connection: &Connection, session: SessionKey, id: &str, pos: u64) -> Result<(), LogError> {
    let sql = "UPDATE approvals SET resolved_pos = ?3 WHERE id = ?1 AND session = ?2 AND resolved_pos IS NULL";
    match connection.prepare_cached(sql)?.execute(params![id, session.0, pos])? {
        0 => Err(LogError::Refused("no such approval waits in this session")),
        _ => Ok(()),
    }
}

const APPROVAL: &str = "SELECT a.id, a.session, s.id, a.path, a.resolved_pos,
      e.seq, e.pos, e.at, e.kind, e.body, e.private
    FROM approvals a JOIN sessions s ON s.n = a.session JOIN events e ON e.pos = a.requested_pos";

/// Approvals in the order they were asked, at most `APPROVAL_PAGE`; settled ones alone the other way round, at most `SETTLED_PAGE`.
pub(super) fn list(connection: &Connection, filter: &ApprovalFilter) -> Result<Vec<ApprovalRow>, LogError> {
    // Each combination is a statement of its own, so that waiting ones are found by their partial index.
    let waiting = match filter.settled {
        Settled::Without => "AND a.resolved_pos IS NULL",
        Settled::With => "",
        Settled::Only => "AND a.resolved_pos IS NOT NULL",
    };
    let (order, limit) = match filter.settled {
        Settled::Without | Settled::With => ("", APPROVAL_PAGE),
        Settled::Only => ("DESC", SETTLED_PAGE),
    };
    let below = match filter.below {
        Some(_) => {
            "AND a.root = (SELECT root FROM sessions WHERE n = ?2)
             AND (a.session = ?2 OR '/' || a.path || '/' LIKE '%/' || (SELECT id FROM sessions WHERE n = ?2) || '/%')"
        }
        None => "AND ?2 IS NULL",
    };
    let sql = format!(
        "{APPROVAL} WHERE a.requested_pos > ?1 {waiting} {below} AND s.deleted_at IS NULL
         ORDER BY a.requested_pos {order} LIMIT {limit}"
    );
    let below = filter.below.map(|session| session.0);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![filter.after_pos, below], from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// One approval, settled or not.
pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<ApprovalRow>, LogError> {
    let sql = format!("{APPROVAL} WHERE a.id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([id], from_row).optional()?)
}

fn from_row(row: &SqlRow<'_>) -> rusqlite::Result<ApprovalRow> {
    let path: String = row.get(3)?;
    Ok(ApprovalRow {
        id: row.get(0)?,
        session: SessionKey(row.get(1)?),
        session_id: row.get(2)?,
        path: path.split('/').map(str::to_owned).collect(),
        resolved_pos: row.get(4)?,
        requested: Row::from_columns(row, 5)?,
    })
}
