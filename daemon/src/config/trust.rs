//! Which contents of which projects' files the person trusts: kept in the state directory, by root, the directory's identity and
//! the hash of the very bytes, with the scripts that its allow rules name. The same bytes elsewhere, other bytes here, or another directory
//! of this name are not trusted, and a rule whose script has changed allows nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::rules::replace;

/// Entries that are kept; the oldest goes first.
const ENTRIES: usize = 1_000;

/// Name of the file in the state directory.
const FILE: &str = "trust.json";

/// One content of one project's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The project's root.
    pub root: PathBuf,
    /// Device of the root directory.
    pub device: u64,
    /// Inode of the root directory.
    pub inode: u64,
    /// Hex SHA-256 of the file's bytes.
    pub hash: String,
}

/// A script that an allow rule of a project's file names, as it was when the file was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The rule's place in the file, from 0.
    pub rule: usize,
    /// The script's path.
    pub path: String,
    /// A hash of what it holds.
    pub hash: String,
}

/// What is kept of one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    identity: Identity,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scripts: Vec<Pin>,
}

/// The record of what is trusted.
#[derive(Debug, Clone)]
pub struct Trust {
    path: PathBuf,
}

impl Trust {
    /// The record in `state_dir`.
    #[must_use]
    pub fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join(FILE),
        }
    }

    /// If this content is trusted here, the scripts it is trusted with. A record that cannot be read trusts nothing.
    #[must_use]
    pub fn of(&self, identity: &Identity) -> Option<Vec<Pin>> {
        let entry = self.read().into_iter().find(|known| known.identity == *identity)?;
        Some(entry.scripts)
    }

    /// Trusts this content, with `scripts` as they are, in place of any other of the same root.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn give(&self, identity: Identity, scripts: Vec<Pin>) -> Result<(), ConfigError> {
        let mut all = self.read();
        all.retain(|known| known.identity.root != identity.root);
        all.push(Entry { identity, scripts });
        let over = all.len().saturating_sub(ENTRIES);
        all.drain(..over);
        self.write(&all)
    }

    /// Trusts nothing of this root any more.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn take_back(&self, root: &Path) -> Result<(), ConfigError> {
        let mut all = self.read();
        all.retain(|known| known.identity.root != root);
        self.write(&all)
    }

    fn read(&self) -> Vec<Entry> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, all: &[Entry]) -> Result<(), ConfigError> {
        let text = serde_json::to_string_pretty(all).map_err(|error| ConfigError::Unwritable {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        replace(&self.path, &text)
    }
}

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
