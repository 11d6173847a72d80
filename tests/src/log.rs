//! What the daemon has written down, straight from its database and without its help.

use anyhow::Context;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use std::path::Path;

/// A row of a session's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    pub seq: i64,
    pub pos: i64,
    pub kind: String,
    pub data: Value,
}

impl Logged {
    /// The text under `key` of its data, empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.data.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A session's events, oldest first. `session` is its full id.
///
/// # Errors
/// When the database cannot be read.
pub fn events(state_dir: &Path, session: &str) -> anyhow::Result<Vec<Logged>> {
    let connection = open(state_dir)?;
    let mut rows = connection.prepare(
        "SELECT seq, pos, kind, body FROM events WHERE session = (SELECT n FROM sessions WHERE id = ?1) ORDER BY seq",
    )?;
    let rows = rows.query_map([session], |row| {
        let body: String = row.get(3)?;
        let data = serde_json::from_str(&body).unwrap_or(Value::String(body));
        Ok(Logged {
            seq: row.get(0)?,
            pos: row.get(1)?,
            kind: row.get(2)?,
            data,
        })
    })?;
    rows.collect::<Result<_, _>>().context("the log")
}

/// Ids of all sessions, in the order they were made.
///
/// # Errors
/// When the database cannot be read.
pub fn sessions(state_dir: &Path) -> anyhow::Result<Vec<String>> {
    let connection = open(state_dir)?;
    let mut rows = connection.prepare("SELECT id FROM sessions WHERE deleted_at IS NULL ORDER BY n")?;
    let ids = rows.query_map([], |row| row.get(0))?.collect::<Result<_, _>>();
    ids.context("the sessions")
}

/// Makes the data of an event something else, as a fault of the disk or of a program might. No daemon may run.
///
/// # Errors
/// When there is no such event.
pub fn damage(state_dir: &Path, session: &str, seq: i64, body: &str) -> anyhow::Result<()> {
    let connection = Connection::open(state_dir.join("agentd.db"))?;
    let changed = connection.execute(
        "UPDATE events SET body = ?3 WHERE seq = ?2 AND session = (SELECT n FROM sessions WHERE id = ?1)",
        (session, seq, body),
    )?;
    anyhow::ensure!(changed == 1, "the session has no event {seq}");
    Ok(())
}

/// Breaks the page of the database that holds `needle`, which must lie in the middle of a value of many pages. No daemon may run.
///
/// # Errors
/// When it is nowhere.
pub fn break_page(state_dir: &Path, needle: &str) -> anyhow::Result<()> {
    const PAGE_BYTES: usize = 4096;
    let file = state_dir.join("agentd.db");
    let mut bytes = std::fs::read(&file)?;
    let found = bytes.windows(needle.len()).position(|window| window == needle.as_bytes());
    let page = found.context("the needle")? / PAGE_BYTES * PAGE_BYTES;
    // The number of the page that follows: there is none of this number.
    bytes.get_mut(page..page + 4).context("the page")?.fill(0xff);
    std::fs::write(&file, bytes)?;
    Ok(())
}

fn open(state_dir: &Path) -> anyhow::Result<Connection> {
    let file = state_dir.join("agentd.db");
    // Not SQLITE_OPEN_READ_ONLY: after a kill -9 the write-ahead log must be recovered before anything can be read.
    let connection = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .with_context(|| file.display().to_string())?;
    connection.pragma_update(None, "query_only", true)?;
    connection.busy_timeout(crate::PATIENCE)?;
    Ok(connection)
}

/// How often each of `events` has this kind.
pub fn count(events: &[Logged], kind: &str) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

/// The kinds of `events`, in order.
pub fn kinds(events: &[Logged]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}
