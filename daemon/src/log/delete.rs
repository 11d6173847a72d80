//! Deleting sessions with everything below them. A deleted session is hidden at once and can be brought back; purging takes
//! its rows away in slices, each a write of its own, so that others' appends go on between them.

use rusqlite::{Connection, params};

use super::error::LogError;
use super::rows::SessionKey;

/// Events deleted by one slice; keeps a slice below 20 ms.
const SLICE_EVENTS: usize = 500;

/// Blobs deleted by one slice; each may be a mebibyte.
const SLICE_BLOBS: usize = 8;

/// Pages given back to the file system by one slice.
const SLICE_PAGES: usize = 256;

/// How a session is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Hidden, and kept until someone purges it.
    Hide {
        /// Milliseconds since 1970, UTC.
        at_ms: i64,
    },
    /// Shown again.
    Restore,
}

/// How far a purge has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purged {
    /// There is more to take away.
    Partly,
    /// Nothing is left.
    Wholly,
}

const BELOW: &str = "WITH RECURSIVE below(n) AS (
    SELECT ?1 UNION SELECT s.n FROM sessions s JOIN below ON s.parent = below.n)";

/// Hides or restores a session and its descendants.
pub(super) fn mark(connection: &Connection, session: SessionKey, deletion: Deletion) -> Result<(), LogError> {
    let at = match deletion {
        Deletion::Hide { at_ms } => Some(at_ms),
        Deletion::Restore => None,
    };
    let sql = format!("{BELOW} UPDATE sessions SET deleted_at = ?2 WHERE n IN below");
    match connection.prepare_cached(&sql)?.execute(params![session.0, at])? {
        0 => Err(LogError::NoSession),
        _ => Ok(()),
    }
}

/// See [`super::EventLog::deleted_before`].
pub(super) fn deleted_before(connection: &Connection, at_ms: i64) -> Result<Vec<SessionKey>, LogError> {
    let mut statement = connection.prepare_cached(
        "SELECT n FROM sessions WHERE deleted_at < ?1 ORDER BY deleted_at
         LIMIT max(1, (SELECT count(*) FROM sessions) / 10)",
    )?;
    let keys = statement.query_map([at_ms], |row| row.get(0).map(SessionKey))?;
    Ok(keys.collect::<Result<_, _>>()?)
}

/// Takes away a slice of a session and its descendants. They must be hidden first.
pub(super) fn purge_slice(connection: &Connection, session: SessionKey) -> Result<Purged, LogError> {
    let sql = format!(
        "{BELOW} DELETE FROM events WHERE pos IN (
           SELECT pos FROM events WHERE session IN below LIMIT {SLICE_EVENTS})"
    );
    if connection.prepare_cached(&sql)?.execute([session.0])? > 0 {
        return Ok(Purged::Partly);
    }
    // References to blobs and approvals go with the sessions' rows.
    let sql = format!("{BELOW} DELETE FROM sessions WHERE n IN below AND deleted_at IS NOT NULL");
    if connection.prepare_cached(&sql)?.execute([session.0])? > 0 {
        return Ok(Purged::Partly);
    }
    let sql = format!(
        "DELETE FROM blobs WHERE hash IN (
           SELECT hash FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = b.hash)
           LIMIT {SLICE_BLOBS})"
    );
    if connection.prepare_cached(&sql)?.execute([])? > 0 {
        return Ok(Purged::Partly);
    }
    give_back_pages(connection)
}

fn give_back_pages(connection: &Connection) -> Result<Purged, LogError> {
    let free = |connection: &Connection| -> Result<u64, LogError> {
        Ok(connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?)
    };
    let before = free(connection)?;
    connection.execute_batch(&format!("PRAGMA incremental_vacuum({SLICE_PAGES})"))?;
    let after = free(connection)?;
    Ok(if after > 0 && after < before {
        Purged::Partly
    } else {
        Purged::Wholly
    })
}
