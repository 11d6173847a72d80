//! The contract between `agentd` and its clients: events, frames, methods, errors, ids, where the socket is, and the typed
//! client. No daemon logic and no terminal handling lives here.

mod content;

pub use content::{Content, Stop, Usage, plain_text};
