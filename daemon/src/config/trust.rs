//! Which contents of which projects' files the person trusts: kept in the state directory, by root, the directory's identity and
//! the hash of the very bytes. The same bytes elsewhere, other bytes here, or another directory of this name are not trusted.

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

    /// Whether this content is trusted here. A record that cannot be read trusts nothing.
    #[must_use]
    pub fn holds(&self, identity: &Identity) -> bool {
        self.read().contains(identity)
    }

    /// Trusts this content in place of any other of the same root.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn give(&self, identity: Identity) -> Result<(), ConfigError> {
        let mut all = self.read();
        all.retain(|known| known.root != identity.root);
        all.push(identity);
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
        all.retain(|known| known.root != root);
        self.write(&all)
    }

    fn read(&self) -> Vec<Identity> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, all: &[Identity]) -> Result<(), ConfigError> {
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
