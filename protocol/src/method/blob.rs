//! Whole outputs: what an event names by the hash of its content because it is too long for the event itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a blob that one answer holds at most: escaped it stays far below the longest message.
pub const BLOB_PAGE_BYTES: u64 = 256 * 1024;

/// Which part of which blob.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlobGetParams {
    /// A session that has an event with this hash.
    pub session: String,
    /// As in the event's `blob`.
    pub hash: String,
    /// First byte, from 0; a page's `next` to go on.
    #[serde(default)]
    pub offset: u64,
    /// Bytes at most; absent, or more than that: 262144.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A part of a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobPage {
    /// Size of the whole blob.
    pub bytes: u64,
    /// The part, ending between two characters. Untrusted text: show it through `display` only.
    pub text: String,
    /// Where the rest begins; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
