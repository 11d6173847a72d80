//! The contract between `agentd` and its clients: events, frames, methods, errors, ids, where the socket is, and the typed
//! client. No daemon logic and no terminal handling lives here.
//!
//! - [`event`]: what a session's log holds.
//! - [`frame`]: what an attached client receives.
//! - [`method`]: every operation with its parameters and its answer.
//! - [`place`]: where the socket and the files are.
//! - [`error`]: what can go wrong, with stable names.
//! - [`client`]: the typed client, which finds and starts the daemon.
//! - [`rule`]: rules and what they say of a command.
//! - [`schema`]: all of it as one JSON Schema document.
//! - [`script`]: the result line of `agentctl send --json`.
//! - [`trust`]: what a project's own file may do.
//! - [`config`]: the values in force.
//! - [`environment`]: which variables of a client its sessions see.
//! - [`display`]: the one way from untrusted text to a terminal.
//! - [`nearest`]: which known word somebody meant.
//! - [`wording`]: what people read when they are asked.

pub mod attention;
pub mod client;
pub mod config;
mod content;
pub mod display;
pub mod environment;
pub mod error;
pub mod event;
pub mod frame;
mod ids;
pub mod method;
pub mod nearest;
pub mod place;
pub mod rule;
pub mod schema;
pub mod script;
mod settings;
mod time;
pub mod trust;
pub mod wording;

pub use content::{Content, Stop, Usage, plain_text};
pub use error::{ErrorKind, RpcError};
pub use event::{Envelope, Event};
pub use frame::Frame;
pub use ids::{ApprovalId, CallId, InputId, ItemId, JobId, Pos, Seq, SessionId, TurnId, short};
pub use settings::{By, Limits, Mode, Settings, Unattended, UnattendedPolicy};
pub use time::Time;

/// The protocol's version, `major.minor`. Clients and daemons of one major version understand each other.
pub const VERSION: &str = "1.0";
