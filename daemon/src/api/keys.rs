//! Keys that clients bring: the edge between the handshake and whoever keeps them.

use async_trait::async_trait;
use protocol::method::{LocalServer, ModelConfirmParams, ModelListAnswer};
use std::collections::BTreeMap;

/// Keeps the keys that clients send, and knows the models they are for.
#[async_trait]
pub(crate) trait KeyDesk: Send + Sync {
    /// Variables that profiles of the user's own config take their key from and that nobody has sent yet.
    fn lacks(&self) -> Vec<String>;

    /// Whether a client's environment may name a provider by its address.
    fn takes_base_url(&self) -> bool;

    /// Takes the values of variables it asked for; others are dropped.
    ///
    /// # Errors
    /// Values that must not be taken apart from each other.
    fn offer(&self, keys: BTreeMap<String, String>) -> Result<(), protocol::RpcError>;

    /// Whether a profile of this name exists.
    fn knows(&self, profile: &str) -> bool;

    /// What answers when a session names no model, for people.
    fn notice(&self) -> Option<String>;

    /// Looks for a model server on this machine if nothing else would answer. Bounded by 150 ms; seldom does anything.
    async fn look_around(&self);

    /// A server of this machine that could answer if a person said so, and nobody was asked yet.
    fn undecided(&self) -> Option<LocalServer>;

    /// Records a person's word on a server of this machine.
    ///
    /// # Errors
    /// `unknown_model` if it is not there as it was shown; `storage_failed` if the word cannot be kept.
    fn confirm(&self, params: &ModelConfirmParams) -> Result<(), protocol::RpcError>;

    /// Why a session of this model and mode may not be: nobody configured the model, and nobody would be asked. `None`: it may.
    fn unfit(&self, profile: Option<&str>, mode: protocol::Mode) -> Option<protocol::RpcError>;

    /// Makes the connection that the first call of a session will want. Returns at once.
    fn warm(&self, profile: Option<&str>);

    /// All models; with `ask`, their servers are asked what they have, for at most 5 s.
    async fn list(&self, ask: AskServers) -> ModelListAnswer;
}

/// Whether the servers of models are asked what they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskServers {
    Yes,
    No,
}
