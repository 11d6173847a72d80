//! What a tool call would touch, found by its target before anything runs and handed to the judge as plain values.
//!
//! The judge never looks at the machine: whatever it has to know about paths, links, git's configuration or the
//! sandbox stands here, is recorded with the call, and gives the same verdict when it is judged again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything policy may know about one tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the tool, as the model calls it.
    pub tool: String,
    /// Whether the call can change anything.
    pub writes: bool,
    /// The files the call names, resolved.
    #[serde(default)]
    pub paths: Vec<PathFact>,
    /// The command line, for tools that run one.
    #[serde(default)]
    pub command: Option<CommandFact>,
    /// The host the call talks to, for tools that reach the network.
    #[serde(default)]
    pub host: Option<String>,
    /// Absolute directories that count as the project, the root first: where a path lies outside, a person is told of what.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
}

/// Roots named in one reason; more are counted.
const ROOTS_NAMED: usize = 8;

/// Of what something lies outside, in words: the project, or every directory the session works in.
pub(super) fn outside_of(roots: &[PathBuf]) -> String {
    if roots.len() < 2 {
        return "the project".to_owned();
    }
    let named: Vec<String> = roots
        .iter()
        .take(ROOTS_NAMED)
        .map(|root| root.display().to_string())
        .collect();
    let more = match roots.len().saturating_sub(ROOTS_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the session's directories ({}{more})", named.join(", "))
}

/// One file or directory a call names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFact {
    /// As the model wrote it.
    pub shown: String,
    /// Absolute, links followed as far as the path exists.
    pub resolved: PathBuf,
    pub inside: Inside,
    pub access: Access,
    /// The name is one that usually holds keys or passwords (`.env`, `id_rsa`, …).
    pub secret: bool,
    /// Lies in `.git` or `.agent`, where a write can make later commands run code.
    pub protected: bool,
    /// A file with several names that belongs to somebody else than its root: whose content it is cannot be seen from its path.
    #[serde(default)]
    pub foreign: bool,
}

impl PathFact {
    /// Whether nothing about it needs a closer look: a file of the project like any other.
    pub fn is_plain(&self) -> bool {
        self.inside == Inside::Inside && !self.secret && !self.protected && !self.foreign
    }

    /// Why it should be looked at before it is read, whoever reads it; `lies` is how it got where it is, `is` or `leads`.
    pub(super) fn concern(&self, lies: &str, roots: &[PathBuf]) -> Option<String> {
        let shown = &self.shown;
        if self.inside == Inside::Outside {
            return Some(format!("{shown} {lies} outside {}.", outside_of(roots)));
        }
        if self.secret {
            return Some(format!("{shown} usually holds secrets."));
        }
        self.foreign
            .then(|| format!("{shown} is a hard link to a file of somebody else."))
    }
}

/// Where a resolved path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inside {
    /// In one of the session's roots.
    Inside,
    Outside,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
}

/// A shell command line and what its target found out about it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CommandFact {
    /// The command line, unchanged.
    pub text: String,
    /// Absolute directory it starts in.
    pub cwd: PathBuf,
    /// Absolute directories that count as the project.
    pub roots: Vec<PathBuf>,
    /// The user's home directory, if there is one.
    #[serde(default)]
    pub home: Option<PathBuf>,
    /// Existing files the words name, globs expanded and links resolved; the words to look at come from
    /// [`operands`](super::shell::operands).
    #[serde(default)]
    pub operands: Vec<PathFact>,
    /// Keys of the repository's own git configuration that make git run programs, e.g. `filter.x.clean`.
    #[serde(default)]
    pub git_config: Vec<String>,
    /// The command is to run outside of the session's sandbox.
    #[serde(default)]
    pub outside_sandbox: bool,
    /// Absolute directories of the daemon itself (state, configuration, runtime), where they are not the usual ones.
    #[serde(default)]
    pub own: Vec<PathBuf>,
    /// The scripts inside the roots that the words name, by path, with a hash of what they hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scripts: BTreeMap<String, String>,
    /// Whether the read-only, no-network sandbox for commands that run unasked can be enforced. Without it commands
    /// that read configuration or start programs ask.
    #[serde(default)]
    pub sandbox: bool,
}

impl CommandFact {
    /// Whether it starts in a directory of the project, where alone rules and allowances for it count.
    #[must_use]
    pub fn starts_inside(&self) -> bool {
        self.roots.iter().any(|root| self.cwd.starts_with(root))
    }
}
