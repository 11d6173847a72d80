//! Why a sandboxed command may have failed, told to the model from facts: whether the paths in question can be written in
//! the sandbox and outside of it, whether there was a network. What the command printed only says which paths to look
//! at; it cannot make something a refusal that is none.

use std::path::{Component, Path, PathBuf};

use super::{Mode, Network, Plan, Profile, repositories};
use crate::target::Resolved;

/// Paths looked at for one command.
const PATHS_LIMIT: usize = 64;

/// Paths named in the explanation.
const NAMED_LIMIT: usize = 3;

/// What the sandbox kept from a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Where it would have made repositories, as who refused them told.
    repositories: Vec<String>,
    unwritable: Vec<PathBuf>,
    no_network: bool,
}

impl Refusal {
    /// Looks at what a failed command was about: the words of its line and of its output.
    pub(in crate::target) fn look(profile: &Profile, cwd: &Resolved, line: &str, output: &str) -> Self {
        let mut plan = Plan::default();
        if profile.mode == Mode::WorkspaceWrite {
            plan.allow_writing(profile);
        }
        let mut unwritable: Vec<PathBuf> = Vec::new();
        for path in candidates(cwd, line).chain(candidates(cwd, output)).take(PATHS_LIMIT) {
            if kept_from_writing(&path, profile, &plan) && !unwritable.contains(&path) {
                unwritable.push(path);
            }
        }
        Self {
            repositories: Vec::new(),
            unwritable,
            no_network: profile.network == Network::Off,
        }
    }

    /// The same, of a command that was kept from making `repositories`.
    #[must_use]
    pub fn with_repositories(mut self, repositories: Vec<String>) -> Self {
        if !repositories.is_empty() {
            // Said once is enough.
            self.unwritable.retain(|path| !repositories::is_kept(path));
        }
        Self { repositories, ..self }
    }

    /// The explanation, one or more sentences; empty if nothing speaks for a refusal.
    pub fn text(&self) -> String {
        let named = |paths: Vec<String>| paths.into_iter().take(NAMED_LIMIT).collect::<Vec<_>>().join(", ");
        let mut said = Vec::new();
        if !self.repositories.is_empty() {
            let named = named(self.repositories.clone());
            said.push(format!(
                "the sandbox does not let commands make repositories in the project, as {named} would be"
            ));
        }
        if !self.unwritable.is_empty() {
            let named = named(self.unwritable.iter().map(|path| path.display().to_string()).collect());
            said.push(format!("the sandbox does not let commands write {named}"));
        }
        if self.no_network {
            said.push(
                if said.is_empty() {
                    "the sandbox has no network"
                } else {
                    "it has no network"
                }
                .to_owned(),
            );
        }
        said.join("; ")
    }
}

/// Whether the user may write here and the sandbox does not.
fn kept_from_writing(path: &Path, profile: &Profile, plan: &Plan) -> bool {
    let Some(nearest) = path.ancestors().find(|path| path.exists()) else {
        return false;
    };
    let by_user = rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK).is_ok();
    let in_sandbox = plan.writable.iter().any(|writable| path.starts_with(writable)) && !is_protected(path, profile);
    by_user && !in_sandbox && !path.starts_with("/proc") && !path.starts_with("/dev")
}

fn is_protected(path: &Path, profile: &Profile) -> bool {
    let below = profile.roots.iter().filter_map(|root| path.strip_prefix(root).ok());
    below
        .into_iter()
        .any(|path| path.starts_with(".agent") || repositories::is_kept(path))
}

/// What looks like a path in a text. Relative ones only where they say so: each word would be one otherwise.
fn candidates<'a>(cwd: &'a Resolved, text: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let border = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '\'' | '"' | '`' | '=' | ';' | ',' | '<' | '>' | '(' | ')' | '|' | '&' | ':'
            )
    };
    text.split(border)
        .filter(|word| word.contains('/') && word.len() < 4096)
        .filter_map(move |word| {
            let word = word.trim_end_matches('.');
            let path = cwd.path.join(word);
            // Directories on the way may be missing: making them may be what failed.
            let there = path.parent()?.ancestors().find(|parent| parent.exists())?;
            let rest = path.strip_prefix(there).ok()?;
            let plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
            plain.then_some(there.canonicalize().ok()?.join(rest))
        })
}
