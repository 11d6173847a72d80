//! What a tool call is about, found by its target before anything runs: resolved paths, the command, the host. Plain data,
//! so that judging a call is a pure function of it, and the same facts can be stored beside the verdict.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything policy needs to know about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The tool's name.
    pub tool: String,
    /// Whether the call may change anything outside the daemon.
    pub writes: bool,
    /// Every path the call names, after resolution.
    #[serde(default)]
    pub paths: Vec<PathFact>,
    /// The shell command, for tools that run one.
    #[serde(default)]
    pub command: Option<CommandFact>,
    /// The host contacted, for tools that reach the network.
    #[serde(default)]
    pub host: Option<String>,
}

/// One path of a call, judged after symbolic links were followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFact {
    /// The path as the model wrote it.
    pub shown: String,
    /// The absolute path without symbolic links; its last components may not exist yet.
    pub resolved: PathBuf,
    /// Whether `resolved` lies below one of the session's roots.
    pub inside: Inside,
    /// What the call does with the path.
    pub access: Access,
    /// The name is one that usually holds secrets (`.env`, private keys, credentials).
    pub secret: bool,
    /// The path lies in `.git` or `.agent`, where files are run or configure the daemon.
    pub protected: bool,
}

/// Where a resolved path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inside {
    /// Below one of the session's roots.
    Inside,
    /// Anywhere else.
    Outside,
}

/// What a call does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Its content, or its listing, is read.
    Read,
    /// It is created or replaced.
    Write,
}

/// A shell command and what it is judged against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandFact {
    /// The command, exactly as the shell gets it.
    pub text: String,
    /// The directory it starts in, resolved.
    pub cwd: PathBuf,
    /// The session's roots, resolved.
    pub roots: Vec<PathBuf>,
    /// `HOME` of the command's environment.
    pub home: Option<PathBuf>,
}
