//! Errors at the edge: a stable `kind` for whatever a client may act on, a message, a hint.

use jsonrpsee::types::ErrorObjectOwned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// What went wrong. The name in snake_case is the stable `kind`; the code is JSON-RPC's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorKind { $($(#[$doc])* $name,)* }

        impl ErrorKind {
            /// Every kind.
            pub const ALL: &'static [ErrorKind] = &[$(Self::$name),*];

            /// JSON-RPC's number for it.
            pub fn code(self) -> i32 {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

kinds! {
    /// The message is not JSON.
    ParseError = -32700,
    /// The message is not a JSON-RPC request.
    InvalidRequest = -32600,
    /// A message over 16 MiB.
    TooLarge = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    /// A fault of the daemon; its log has the detail.
    Internal = -32603,
    /// Acting needs the handshake with the token of the state directory.
    NotAuthorized = -32001,
    /// What a tool starts may not act.
    FromInside = -32002,
    /// The major versions of client and daemon differ.
    IncompatibleVersion = -32003,
    SessionNotFound = -32010,
    /// The text names more than one session; `data.candidates` lists them.
    SessionAmbiguous = -32011,
    /// The id is taken by another session.
    SessionExists = -32012,
    /// The name is taken by another session.
    NameTaken = -32013,
    /// A turn is open; interrupt it or force.
    TurnRunning = -32014,
    /// The session's log cannot be read; `data.seq` says where.
    SessionUnreadable = -32015,
    TurnNotFound = -32016,
    InputNotFound = -32017,
    /// The id is known with another content or other terms.
    InputConflict = -32018,
    /// 32 inputs wait already.
    QueueFull = -32019,
    ApprovalNotFound = -32020,
    /// Somebody was first; `data` has `by`, `decision`, `at`.
    AlreadyResolved = -32021,
    /// The answer names another digest than the request's.
    DigestMismatch = -32022,
    /// The changed arguments are denied or blocked; the request still waits.
    EditRefused = -32023,
    /// No such job runs in the session.
    JobNotFound = -32024,
    /// The session has no output of this hash.
    BlobNotFound = -32025,
    /// `after_seq` lies beyond the head; `data.head` says where that is.
    CursorAhead = -32030,
    /// No such model profile.
    UnknownModel = -32040,
    /// A file of rules or settings says something the daemon does not know; the message names file and line.
    InvalidConfig = -32041,
    /// The provider refused the login, or nobody finished it in time.
    LoginFailed = -32042,
    /// No such login is under way.
    LoginNotFound = -32043,
    /// The log could not be written.
    StorageFailed = -32050,
    /// Try again after `data.retry_after_ms`.
    Busy = -32051,
    /// The daemon is about to stop and takes no new turn.
    Draining = -32052,
    /// Too many connections, subscriptions or calls at once.
    LimitReached = -32053,
}

impl std::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// An error a client gets.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default())]
pub struct RpcError {
    pub kind: ErrorKind,
    /// What happened, to what.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Further members of the error's `data`.
    pub data: serde_json::Map<String, Value>,
}

impl RpcError {
    /// An error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            data: serde_json::Map::new(),
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a member to `data`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.data.insert(name.to_owned(), value);
        }
        self
    }
}

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        let mut data = error.data;
        data.insert("kind".to_owned(), Value::String(error.kind.to_string()));
        if let Some(hint) = error.hint {
            data.insert("hint".to_owned(), Value::String(hint));
        }
        Self::owned(error.kind.code(), error.message, Some(data))
    }
}

impl From<&ErrorObjectOwned> for RpcError {
    fn from(object: &ErrorObjectOwned) -> Self {
        let mut data: serde_json::Map<String, Value> = object
            .data()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let kind = data.remove("kind").and_then(|kind| serde_json::from_value(kind).ok());
        let kind = kind.unwrap_or_else(|| ErrorKind::from_code(object.code()));
        let hint = data.remove("hint").and_then(|hint| hint.as_str().map(str::to_owned));
        Self {
            kind,
            message: object.message().to_owned(),
            hint,
            data,
        }
    }
}

impl ErrorKind {
    /// The first kind with this code; `Internal` for a code nobody knows.
    pub fn from_code(code: i32) -> Self {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.code() == code)
            .unwrap_or(Self::Internal)
    }
}
