//! Where subscriptions start.

use crate::ids::{Pos, Seq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From where a subscription to one session starts: at most one of `after_seq` and `tail`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachParams {
    pub session: String,
    /// Sends the events after this one first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<Seq>,
    /// Sends the events of this many last turns first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// Whether the text of open items is wanted; true if absent.
    #[serde(default = "yes")]
    pub deltas: bool,
}

fn yes() -> bool {
    true
}

/// From where a subscription to all sessions starts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WatchParams {
    /// Absent: from now on.
    pub after_pos: Option<Pos>,
}
