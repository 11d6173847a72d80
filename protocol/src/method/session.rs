//! Sessions and their inputs.

use crate::content::Content;
use crate::event::{Delivery, TurnOutcome};
use crate::frame::Phase;
use crate::ids::{InputId, Seq, SessionId};
use crate::settings::{Limits, Mode, Unattended};
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// As it should be.
    Good,
    /// It works, with less.
    Reduced,
    /// It does not.
    Missing,
}

/// A new session.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateParams {
    /// A UUIDv7 made by the client, so that it can retry safely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Directory commands start in; absolute. The project's root is found from it.
    pub cwd: String,
    /// `[A-Za-z][A-Za-z0-9._-]{0,63}`, not `last`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How long `mode` holds, in milliseconds; then the one before does again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_for_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended: Option<Unattended>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Further directories the session works in, as in `session.update`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_roots: Vec<String>,
}

/// A session in lists.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    pub id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first line of its first input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub cwd: String,
    pub root: String,
    /// Further directories it works in, without links, in the order they were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added_roots: Vec<String>,
    /// Name of the model's profile; absent: chosen at each turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub mode: Mode,
    /// When a timed mode ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_until: Option<Time>,
    pub phase: Phase,
    pub head: Seq,
    pub created_at: Time,
    pub updated_at: Time,
    /// Approvals that wait.
    pub approvals: u32,
    /// How its last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TurnOutcome>,
    #[serde(default)]
    pub archived: bool,
}

/// Which sessions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListParams {
    /// Only those of the project this directory belongs to.
    pub cwd: Option<String>,
    /// At most this many, 20 if absent, 200 at most.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionPage {
    pub sessions: Vec<SessionInfo>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    pub session: String,
    /// Where the person stands; `last` needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// A session, as `session.get` finds it, `last` excepted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    pub session: String,
}

/// Changes of a session; absent fields stay.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateParams {
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How long `mode` holds, in milliseconds; then the one before does again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_for_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended: Option<Unattended>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Further directories the session is to work in: absolute, at most 16 in all. One that lies in a root already changes
    /// nothing; none is ever taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_roots: Vec<String>,
}

/// Which session to delete.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteParams {
    pub session: String,
    /// Interrupts an open turn instead of refusing.
    #[serde(default)]
    pub force: bool,
    /// Takes its history away at once, rather than after 7 days.
    #[serde(default)]
    pub now: bool,
}

/// An input.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    pub session: String,
    /// Made by the client if it wants to retry safely; at most 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_id: Option<InputId>,
    pub content: Vec<Content>,
    #[serde(default)]
    pub delivery: Delivery,
    /// Mode of the turn this input starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How long `mode` holds, in milliseconds; then the one before does again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_for_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended: Option<Unattended>,
    /// Names of the tools the turn this input starts may use, of those that are offered; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Bound of the turn this input starts; time in which only people are waited for does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// A person watches the answer come.
    #[serde(default)]
    pub interactive: bool,
}
