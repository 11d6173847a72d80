//! Reading events: forwards and backwards in one session, and over all sessions in the order of commits.

use rusqlite::{Connection, OptionalExtension, Rows, params};

use super::error::LogError;
use super::rows::{Row, SessionKey};

/// Most rows a page has.
pub const PAGE_ROWS: usize = 200;

/// Bytes of bodies and private parts after which a page ends; its last row may go beyond.
pub const PAGE_BYTES: usize = 1024 * 1024;

const COLUMNS: &str = "seq, pos, at, kind, body, private";

/// Rows with a seq above `after`, oldest first.
pub(super) fn forwards(
    connection: &Connection,
    session: SessionKey,
    after: u64,
    limit: usize,
) -> Result<Vec<Row>, LogError> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query(params![session.0, after, limit.min(PAGE_ROWS)])?;
    page(rows, |row| Row::from_columns(row, 0), Row::bytes)
}

/// Rows with a seq below `before`, newest first.
pub(super) fn backwards(
    connection: &Connection,
    session: SessionKey,
    before: u64,
    limit: usize,
) -> Result<Vec<Row>, LogError> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE session = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3");
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query(params![session.0, before, limit.min(PAGE_ROWS)])?;
    page(rows, |row| Row::from_columns(row, 0), Row::bytes)
}

/// Rows of all sessions with a pos above `pos`, in the order of commits; with `kinds` only those.
pub(super) fn after_pos(
    connection: &Connection,
    pos: u64,
    limit: usize,
    kinds: &str,
) -> Result<Vec<(SessionKey, String, Row)>, LogError> {
    let sql = "SELECT s.n, s.id, e.seq, e.pos, e.at, e.kind, e.body, e.private
        FROM events e CROSS JOIN sessions s ON s.n = e.session
        WHERE e.pos > ?1 AND (?2 = '[]' OR e.kind IN (SELECT value FROM json_each(?2))) AND s.deleted_at IS NULL
        ORDER BY e.pos LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query(params![pos, kinds, limit.min(PAGE_ROWS)])?;
    let read = |row: &rusqlite::Row<'_>| Ok((SessionKey(row.get(0)?), row.get(1)?, Row::from_columns(row, 2)?));
    page(rows, read, |(_, _, row)| row.bytes())
}

/// The event that accepted an input.
pub(super) fn input(connection: &Connection, session: SessionKey, input_id: &str) -> Result<Option<Row>, LogError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM events
         WHERE session = ?1 AND kind = 'input.accepted' AND body->>'input_id' = ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement
        .query_row(params![session.0, input_id], |row| Row::from_columns(row, 0))
        .optional()?)
}

/// Seq of the `nth` last event of a kind, counting from 1; `None` where there are fewer.
pub(super) fn nth_last(
    connection: &Connection,
    session: SessionKey,
    kind: &str,
    nth: u64,
) -> Result<Option<u64>, LogError> {
    let sql = "SELECT seq FROM events WHERE session = ?1 AND kind = ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?3";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement
        .query_row(params![session.0, kind, nth.saturating_sub(1)], |row| row.get(0))
        .optional()?)
}

/// The last rows of a kind, newest first.
pub(super) fn last_of_kind(
    connection: &Connection,
    session: SessionKey,
    kind: &str,
    limit: usize,
) -> Result<Vec<Row>, LogError> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE session = ?1 AND kind = ?2 ORDER BY seq DESC LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query(params![session.0, kind, limit.min(PAGE_ROWS)])?;
    page(rows, |row| Row::from_columns(row, 0), Row::bytes)
}

/// The first row of a kind with a seq above `after`.
pub(super) fn first_of_kind(
    connection: &Connection,
    session: SessionKey,
    kind: &str,
    after: u64,
) -> Result<Option<Row>, LogError> {
    let sql =
        format!("SELECT {COLUMNS} FROM events WHERE session = ?1 AND seq > ?2 AND kind = ?3 ORDER BY seq LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement
        .query_row(params![session.0, after, kind], |row| Row::from_columns(row, 0))
        .optional()?)
}

fn page<T>(
    mut rows: Rows<'_>,
    read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    size: impl Fn(&T) -> usize,
) -> Result<Vec<T>, LogError> {
    let mut page = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let row = read(row)?;
        bytes += size(&row);
        page.push(row);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(page)
}
