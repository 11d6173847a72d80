//! The statements that put events, sessions and their columns into the database. They run inside the writer's savepoint:
//! an error undoes all of one append.

use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::PROBE_BYTES;
use super::approvals;
use super::error::LogError;
use super::rows::{Append, Appended, Columns, Lifetime, NewRow, NewSession, SessionKey};

/// Rows of one append; a reply has at most a few hundred items and calls.
const APPEND_ROWS: usize = 4096;

/// Makes the session and appends its first rows.
pub(super) fn create(connection: &Connection, new: &NewSession, append: Append) -> Result<Appended, LogError> {
    let session = insert_session(connection, new)?;
    let root = root_for(connection, session, new.parent)?;
    connection
        .prepare_cached("UPDATE sessions SET root = ?2 WHERE n = ?1")?
        .execute(params![session.0, root.0])?;
    write(connection, session, append)
}

/// Appends to a session that exists.
pub(super) fn append(connection: &Connection, append: Append) -> Result<Appended, LogError> {
    write(connection, append.session, append)
}

fn write(connection: &Connection, session: SessionKey, append: Append) -> Result<Appended, LogError> {
    if append.rows.len() > APPEND_ROWS {
        return Err(LogError::Refused("too many rows"));
    }
    check_head(connection, session, append.expected_seq)?;
    let first_pos = insert_rows(connection, session, &append)?;
    advance(connection, session, &append, first_pos)?;
    set_columns(connection, session, &append.columns)?;
    for change in &append.approvals {
        approvals::apply(connection, session, change, append.rows.len(), first_pos)?;
    }
    Ok(Appended {
        session,
        first_pos,
        rows: append.rows,
    })
}

fn insert_session(connection: &Connection, new: &NewSession) -> Result<SessionKey, LogError> {
    let sql = "INSERT INTO sessions
        (id, name, root, parent, phase, head, changed_pos, root_path, cwd, created_at, updated_at, ephemeral)
        VALUES (:id, :name, 0, :parent, 'idle', 0, 0, :root_path, :cwd, :at, :at, :ephemeral)";
    connection.prepare_cached(sql)?.execute(named_params! {
        ":id": new.id,
        ":name": new.name,
        ":parent": new.parent.map(|parent| parent.0),
        ":root_path": new.root_path,
        ":cwd": new.cwd,
        ":at": new.created_at_ms,
        ":ephemeral": new.lifetime == Lifetime::Ephemeral,
    })?;
    Ok(SessionKey(connection.last_insert_rowid()))
}

/// The topmost ancestor: the session itself where it has no parent.
fn root_for(connection: &Connection, session: SessionKey, parent: Option<SessionKey>) -> Result<SessionKey, LogError> {
    let Some(parent) = parent else { return Ok(session) };
    let root = connection
        .prepare_cached("SELECT root FROM sessions WHERE n = ?1")?
        .query_row([parent.0], |row| row.get(0))
        .optional()?;
    root.map(SessionKey).ok_or(LogError::NoSession)
}

fn check_head(connection: &Connection, session: SessionKey, expected: u64) -> Result<(), LogError> {
    let head: Option<u64> = connection
        .prepare_cached("SELECT head FROM sessions WHERE n = ?1")?
        .query_row([session.0], |row| row.get(0))
        .optional()?;
    match head {
        None => Err(LogError::NoSession),
        Some(head) if head.checked_add(1) == Some(expected) => Ok(()),
        Some(head) => Err(LogError::Conflict { expected, head }),
    }
}

/// Inserts the rows; the pos of the first. One writer inserts them, so their positions follow each other.
fn insert_rows(connection: &Connection, session: SessionKey, append: &Append) -> Result<u64, LogError> {
    let sql = "INSERT INTO events (session, seq, at, kind, body, private) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = connection.prepare_cached(sql)?;
    let mut first_pos = 0;
    for (seq, row) in (append.expected_seq..).zip(&append.rows) {
        let NewRow {
            kind,
            at_ms,
            body,
            private,
        } = row;
        let pos = insert.insert(params![session.0, seq, at_ms, kind, body, private])?;
        if seq == append.expected_seq {
            first_pos = u64::try_from(pos).unwrap_or(0);
        }
    }
    Ok(first_pos)
}

fn advance(connection: &Connection, session: SessionKey, append: &Append, first_pos: u64) -> Result<(), LogError> {
    let Some(last) = append.rows.last() else { return Ok(()) };
    let count = append.rows.len() as u64;
    let sql = "UPDATE sessions SET head = head + ?2, changed_pos = ?3, updated_at = ?4 WHERE n = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![session.0, count, first_pos + count - 1, last.at_ms])?;
    Ok(())
}

fn set_columns(connection: &Connection, session: SessionKey, columns: &Columns) -> Result<(), LogError> {
    if *columns == Columns::default() {
        return Ok(());
    }
    let sql = "UPDATE sessions SET
          phase = coalesce(:phase, phase), queued = coalesce(:queued, queued), name = coalesce(:name, name),
          title = coalesce(:title, title), model = coalesce(:model, model), mode = coalesce(:mode, mode),
          outcome = coalesce(:outcome, outcome), cwd = coalesce(:cwd, cwd), archived = coalesce(:archived, archived),
          added_roots = coalesce(:added_roots, added_roots)
        WHERE n = :n";
    connection.prepare_cached(sql)?.execute(named_params! {
        ":n": session.0,
        ":phase": columns.phase,
        ":queued": columns.queued,
        ":name": columns.name,
        ":title": columns.title,
        ":model": columns.model,
        ":mode": columns.mode,
        ":outcome": columns.outcome,
        ":cwd": columns.cwd,
        ":archived": columns.archived,
        ":added_roots": columns.added_roots,
    })?;
    if let Some(state) = &columns.state {
        let sql = "UPDATE sessions SET state = ?2, state_seq = ?3, state_version = ?4 WHERE n = ?1";
        connection
            .prepare_cached(sql)?
            .execute(params![session.0, state.bytes, state.seq, state.version])?;
    }
    Ok(())
}

/// Writes something of no meaning.
pub(super) fn probe(connection: &Connection) -> Result<(), LogError> {
    let sql = "INSERT INTO probe (n, writes, filler) VALUES (1, 1, zeroblob(?1))
        ON CONFLICT (n) DO UPDATE SET writes = writes + 1, filler = excluded.filler";
    connection.prepare_cached(sql)?.execute([PROBE_BYTES])?;
    Ok(())
}
