//! Session allowances: what "allow for this session" covers, offered with the prompt and shown word for word.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::facts::{Facts, Inside};

/// What a person has allowed until the session ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Grant {
    /// Commands that begin with these words.
    Command { tool: String, words: Vec<String> },
    /// This very command line.
    Exactly { tool: String, text: String },
    /// A file tool, anywhere inside the roots but on secret or protected files.
    Files { tool: String },
    /// A network tool on one host.
    Host { tool: String, host: String },
}

/// What "allow for this session" would cover for this call; none where it cannot be offered.
#[must_use]
pub fn grant_for(facts: &Facts) -> Option<Grant> {
    let tool = facts.tool.clone();
    if let Some(command) = &facts.command {
        return Some(Grant::Exactly {
            tool,
            text: command.text.clone(),
        });
    }
    if let Some(host) = &facts.host {
        return Some(Grant::Host {
            tool,
            host: host.clone(),
        });
    }
    plain_files(facts).then_some(Grant::Files { tool })
}

fn plain_files(facts: &Facts) -> bool {
    !facts.paths.is_empty()
        && facts
            .paths
            .iter()
            .all(|path| path.inside == Inside::Inside && !path.secret && !path.protected)
}

impl Grant {
    /// Whether the call is allowed by this.
    #[must_use]
    pub fn covers(&self, facts: &Facts) -> bool {
        match self {
            Self::Command { .. } => false,
            Self::Exactly { tool, text } => {
                *tool == facts.tool && facts.command.as_ref().is_some_and(|command| command.text == *text)
            }
            Self::Files { tool } => {
                *tool == facts.tool && facts.command.is_none() && facts.host.is_none() && plain_files(facts)
            }
            Self::Host { tool, host } => *tool == facts.tool && facts.host.as_ref() == Some(host),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { tool, words } => write!(f, "{tool}: {} …", words.join(" ")),
            Self::Exactly { tool, text } => write!(f, "{tool}: exactly {text}"),
            Self::Files { tool } => write!(f, "{tool} inside the project"),
            Self::Host { tool, host } => write!(f, "{tool} at {host}"),
        }
    }
}
