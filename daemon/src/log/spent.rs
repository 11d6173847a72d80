//! What model calls used: sums over the log's ended calls. A call that failed counts with what its provider reported.

use protocol::Usage;
use rusqlite::{Connection, Row as SqlRow, params};

use super::error::LogError;
use super::rows::SessionKey;

/// Most groups of one sum; the newest are given.
pub const SPENT_GROUPS: usize = 200;

/// What is summed up apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentBy {
    /// Nothing: one group, its name empty.
    Nothing,
    /// The day of the call's end, UTC, `2026-01-31`.
    Day,
    /// The profile and the model that answered, with a blank between; failed calls have none.
    Model,
    /// The session's id.
    Session,
}

/// A group and what it used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spent {
    /// As `SpentBy` says.
    pub group: String,
    /// Calls that ended.
    pub calls: u64,
    /// Those of them that failed.
    pub failed: u64,
    pub usage: Usage,
    /// US dollars of the calls whose price is known; `None`: of none.
    pub cost: Option<f64>,
    /// Calls that used tokens and have no price.
    pub unpriced: u64,
}

/// The sums of all sessions or of one, deleted ones included, the newest group first.
pub(super) fn sums(connection: &Connection, session: Option<SessionKey>, by: SpentBy) -> Result<Vec<Spent>, LogError> {
    let group = match by {
        SpentBy::Nothing => "''",
        SpentBy::Day => "date(at / 1000, 'unixepoch')",
        SpentBy::Model => "coalesce((body->>'$.model.profile') || ' ' || (body->>'$.model.model'), '')",
        SpentBy::Session => "(SELECT id FROM sessions WHERE n = session)",
    };
    // A statement for each case, so that one session is found by the index.
    let only = if session.is_some() {
        "session = ?1"
    } else {
        "?1 IS NULL"
    };
    let sql = format!(
        "SELECT {group}, count(*), sum(kind = 'step.failed'),
           sum(body->>'$.usage.input'), sum(body->>'$.usage.output'), sum(body->>'$.usage.cached'),
           sum(body->>'$.usage.cache_write'), sum(body->>'$.usage.reasoning'), sum(body->>'$.cost'),
           sum(body->>'$.usage.input' > 0 AND body->>'$.cost' IS NULL)
         FROM events WHERE kind IN ('step.completed', 'step.failed') AND {only}
         GROUP BY 1 ORDER BY max(pos) DESC LIMIT {SPENT_GROUPS}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![session.map(|session| session.0)], from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// US dollars since a moment, found in the index of ended calls without reading the rest of the log.
pub(super) fn cost_since(connection: &Connection, since_ms: i64) -> Result<f64, LogError> {
    let sql = "SELECT total(body->>'$.cost') FROM events INDEXED BY spent
               WHERE kind IN ('step.completed', 'step.failed') AND at >= ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row(params![since_ms], |row| row.get(0))?)
}

fn from_row(row: &SqlRow<'_>) -> rusqlite::Result<Spent> {
    // A sum over nothing but missing values is NULL.
    let count = |column: usize| Ok::<u64, rusqlite::Error>(row.get::<_, Option<u64>>(column)?.unwrap_or(0));
    Ok(Spent {
        group: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
        calls: count(1)?,
        failed: count(2)?,
        usage: Usage {
            input: count(3)?,
            output: count(4)?,
            cached: count(5)?,
            cache_write: count(6)?,
            reasoning: count(7)?,
        },
        cost: row.get(8)?,
        unpriced: count(9)?,
    })
}
