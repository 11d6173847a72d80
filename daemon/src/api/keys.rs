//! Keys that clients bring: the edge between the handshake and whoever keeps them.

use std::collections::BTreeMap;

/// Keeps the keys that clients send.
pub(crate) trait KeyDesk: Send + Sync {
    /// Variables that profiles of the user's own config take their key from and that nobody has sent yet.
    fn lacks(&self) -> Vec<String>;

    /// Takes the values of variables it asked for; others are dropped.
    ///
    /// # Errors
    /// Values that must not be taken apart from each other.
    fn offer(&self, keys: BTreeMap<String, String>) -> Result<(), protocol::RpcError>;

    /// Whether a profile of this name exists.
    fn knows(&self, profile: &str) -> bool;

    /// What answers when a session names no model, for people.
    fn notice(&self) -> Option<String>;
}
