//! Which model servers of this machine a person let answer: anybody may listen on a free port, so a server nobody configured gets
//! nothing before somebody who was told whose it is said so, once. Kept in the state directory by address and owner: another account
//! at the same port is asked about anew.

use protocol::method::{LocalDecision, LocalServer};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Name of the file in the state directory.
const FILE: &str = "local_servers.json";

/// Servers that are remembered; the oldest goes first.
const ENTRIES: usize = 64;

/// What was said of one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    address: String,
    uid: u32,
    decision: LocalDecision,
}

/// The record of what was said. Only this daemon writes it.
#[derive(Debug)]
pub(super) struct Confirmed {
    path: PathBuf,
    entries: Mutex<Vec<Entry>>,
}

impl Confirmed {
    /// The record in `state_dir`. One that cannot be read confirms nothing.
    pub(super) fn open(state_dir: &Path) -> Self {
        let path = state_dir.join(FILE);
        let text = std::fs::read(&path).unwrap_or_default();
        let entries = serde_json::from_slice(&text).unwrap_or_default();
        Self {
            path,
            entries: Mutex::new(entries),
        }
    }

    /// What was said of this server; `None`: nobody was asked yet.
    pub(super) fn of(&self, server: &LocalServer) -> Option<LocalDecision> {
        let entries = self.entries();
        let known = entries.iter().rev().find(|entry| is_of(entry, server));
        known.map(|entry| entry.decision)
    }

    /// Records what a person said.
    ///
    /// # Errors
    /// The record cannot be written; what was said before stays.
    pub(super) fn record(&self, server: &LocalServer, decision: LocalDecision) -> std::io::Result<()> {
        let mut entries = self.entries();
        let mut changed = entries.clone();
        changed.retain(|entry| !is_of(entry, server));
        changed.push(Entry {
            address: server.address.clone(),
            uid: server.uid,
            decision,
        });
        let over = changed.len().saturating_sub(ENTRIES);
        changed.drain(..over);
        write(&self.path, &serde_json::to_vec_pretty(&changed)?)?;
        *entries = changed;
        Ok(())
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // One assignment cannot leave the list half made.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_of(entry: &Entry, server: &LocalServer) -> bool {
    entry.address == server.address && entry.uid == server.uid
}

/// Replaces the file so that a crash leaves the old or the new.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension("json.new");
    let _ = std::fs::remove_file(&temporary);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(address: &str, uid: u32) -> LocalServer {
        LocalServer {
            name: "ollama".to_owned(),
            address: address.to_owned(),
            model: "m".to_owned(),
            owner: "yours".to_owned(),
            uid,
        }
    }

    #[test]
    fn a_decision_is_of_one_address_and_owner_and_outlives_the_daemon() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let confirmed = Confirmed::open(dir.path());
        let ours = server("127.0.0.1:11434", 1_000);
        assert_eq!(confirmed.of(&ours), None);
        confirmed.record(&ours, LocalDecision::Never)?;
        confirmed.record(&ours, LocalDecision::Use)?;
        for confirmed in [confirmed, Confirmed::open(dir.path())] {
            assert_eq!(confirmed.of(&ours), Some(LocalDecision::Use));
            assert_eq!(confirmed.of(&server("127.0.0.1:11434", 990)), None, "another owner");
            assert_eq!(confirmed.of(&server("127.0.0.1:8080", 1_000)), None, "another port");
        }
        Ok(())
    }

    #[test]
    fn the_record_is_bounded_and_a_broken_one_confirms_nothing() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let confirmed = Confirmed::open(dir.path());
        for port in 0..2 * ENTRIES {
            confirmed.record(&server(&port.to_string(), 0), LocalDecision::Use)?;
        }
        assert_eq!(confirmed.entries().len(), ENTRIES);
        std::fs::write(dir.path().join(FILE), "{")?;
        assert_eq!(Confirmed::open(dir.path()).of(&server("1", 0)), None);
        Ok(())
    }
}
