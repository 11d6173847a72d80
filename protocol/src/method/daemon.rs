//! The handshake, and the daemon about itself.

use super::model::LocalServer;
use super::session::Standing;
use crate::attention::Attention;
use crate::frame::Role;
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who a client is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HelloParams {
    /// The protocol's version the client speaks, `major.minor`.
    pub version: String,
    /// The client's name, at most 64 bytes.
    pub client: String,
    /// What it is: `tui`, `cli`, `script`, …
    pub kind: String,
    /// Content of `token` in the state directory. Absent: the client may watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// It can answer approvals and has a person before it.
    #[serde(default)]
    pub answers: bool,
    /// Asks for less than the token gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The client's environment, for the sessions it creates; names outside the list are dropped.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Values of the key variables that an earlier `hello` said profiles lack. Kept in memory only.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
}

/// The daemon's side of the handshake.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The protocol's version the daemon speaks.
    pub version: String,
    /// The daemon's own version.
    pub daemon: String,
    pub role: Role,
    /// Names of optional parts of the protocol that are there.
    pub capabilities: Vec<String>,
    pub limits: ProtocolLimits,
    /// Names of environment variables that profiles take their key from and that nobody has sent yet.
    pub lacks: Vec<String>,
    /// Names of further variables that `[session] env` lets commands have: a client that has them sends them in `environment` of a
    /// second handshake.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Whether `AGENTD_BASE_URL` with `AGENTD_API_KEY` names a provider: as long as no profile is configured.
    #[serde(default)]
    pub takes_base_url: bool,
    /// What answers when a session names no model, and why; for people.
    pub model_notice: Option<String>,
    /// When and how to ask for the attention of a person who looks elsewhere.
    #[serde(default)]
    pub attention: Attention,
    /// What is wrong with the configuration's file or the user's rules as they are now, and what holds until it is mended; lines for
    /// people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_fault: Option<String>,
    /// A model server of this machine that could answer instead of the demo model, once a person says so with `model.confirm`. Absent
    /// too where somebody said no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_server: Option<LocalServer>,
}

/// Bounds of the transport.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolLimits {
    pub message_bytes: u64,
    pub batch: u32,
    pub calls_in_flight: u32,
    pub subscriptions: u32,
    pub queued_inputs: u32,
}

/// The daemon about itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatusAnswer {
    pub version: String,
    pub protocol: String,
    pub pid: u32,
    pub socket: String,
    pub state_dir: String,
    pub started_at: Time,
    pub clients: u32,
    pub sessions_open: u32,
    pub turns_running: u32,
    pub approvals_pending: u32,
    pub draining: bool,
    /// Whether the log takes writes.
    pub storage_ok: bool,
}

/// What protects the person on this machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DoctorAnswer {
    /// The sandbox that sessions' commands run in: `workspace-write`, `read-only`, `off`.
    pub sandbox: String,
    /// Whether sandboxed commands reach the network.
    pub network: bool,
    /// One row for each thing that was looked at.
    pub checks: Vec<DoctorCheck>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DoctorCheck {
    /// One word.
    pub name: String,
    pub standing: Standing,
    /// What that means here, one line.
    pub detail: String,
}

/// How the daemon stops.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopParams {
    /// Time running turns get to end, in milliseconds; then they are parked. 30 s if absent.
    pub drain_ms: Option<u64>,
}
