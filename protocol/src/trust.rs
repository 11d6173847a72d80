//! Trust in a project's own file: what it asks for, and the person's word that this very content counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which project.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustGetParams {
    /// A directory; the project it belongs to.
    pub cwd: String,
}

/// A project's own file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustView {
    /// The project's root.
    pub root: String,
    /// Where its file is, or would be.
    pub file: String,
    /// Hex SHA-256 of the file; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The file's text. Untrusted: show it through `display` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether this content is trusted in this directory.
    pub trusted: bool,
    /// One sentence for each thing in it that does not count now.
    pub ignored: Vec<String>,
    /// Scripts that its allow rules name: trusted as they are, and asked about once they change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<String>,
}

/// The person's word.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustSetParams {
    /// A directory; the project it belongs to.
    pub cwd: String,
    /// The hash that was shown with the text: another content is not trusted. Absent: nothing is trusted any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}
