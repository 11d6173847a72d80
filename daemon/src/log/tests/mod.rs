//! What the log promises, on real files.

mod appending;
mod lists;
mod opening;
mod spent;
mod storage;

use tempfile::TempDir;

use super::*;

/// An open log in a directory of its own.
struct Scene {
    dir: TempDir,
    log: EventLog,
    join: LogJoin,
}

impl Scene {
    fn open() -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (log, join) = EventLog::open(dir.path())?;
        Ok(Self { dir, log, join })
    }

    async fn session(&self, id: &str) -> anyhow::Result<SessionKey> {
        Ok(self
            .log
            .create(new_session(id), first(&["session.created"]))
            .await?
            .session)
    }
}

fn new_session(id: &str) -> NewSession {
    NewSession {
        id: id.to_owned(),
        name: None,
        parent: None,
        root_path: "/project".to_owned(),
        cwd: "/project/src".to_owned(),
        created_at_ms: 1_000,
        lifetime: Lifetime::Kept,
    }
}

fn row(kind: &'static str, body: &str) -> NewRow {
    NewRow {
        kind,
        at_ms: 2_000,
        body: body.to_owned(),
        private: None,
    }
}

fn append(session: SessionKey, expected_seq: u64, rows: Vec<NewRow>) -> Append {
    Append {
        session,
        expected_seq,
        rows,
        columns: Columns::default(),
        approvals: Vec::new(),
    }
}

/// The first rows of a new session.
fn first(kinds: &[&'static str]) -> Append {
    append(SessionKey(0), 1, kinds.iter().map(|kind| row(kind, "{}")).collect())
}

fn seqs(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.seq).collect()
}
