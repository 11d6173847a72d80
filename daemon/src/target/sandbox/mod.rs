//! What a command may reach: the sandbox it runs in, chosen by the session, made by the guard between fork and exec.
//!
//! A [`Settings`] value says what a session wants and what this machine can enforce; together with the [`Confinement`] of
//! one call it gives the [`Profile`] that travels to the guard. There `plan` looks at the file system and `enforce` makes
//! it true: namespaces and mounts, Landlock, seccomp. What a machine cannot enforce is said ([`Support`]), and a sandbox
//! that cannot be made as ordered ends the call instead of running it with less.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Target;

mod caches;
mod counters;
mod ghosts;
mod hidden;
mod lookup;
mod met;
mod mounts;
mod notify;
mod passing;
mod pids;
mod plan;
mod refusal;
mod repositories;
mod ruleset;
mod support;
mod syscalls;
mod tree;
mod voice;

#[cfg(target_os = "linux")]
mod enforce;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(not(target_os = "linux"))]
#[path = "unsupervised.rs"]
mod supervisor;

pub use caches::Caches;
pub(super) use counters::Counters;
pub use counters::Sought;
#[cfg(target_os = "linux")]
pub(super) use enforce::enforce;
pub(super) use ghosts::Ghosts;
pub(super) use hidden::holds_keys;
pub use met::Met;
pub(super) use pids::{Hear, Tell};
pub(super) use plan::Plan;
pub use refusal::Refusal;
pub(super) use supervisor::Supervisor;
pub use support::{Check, Form, Notices, Pids, Standing, Support, probe};
pub(super) use support::{PROBE, answer_probe};
pub(super) use voice::{Voice, channels};

/// What a session's commands may do by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Everything the user may.
    Off,
    /// Nothing can be written but to devices such as `/dev/null`.
    ReadOnly,
    /// The roots, temporary directories and the usual build caches can be written.
    #[default]
    WorkspaceWrite,
}

impl Mode {
    /// The word used in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
        }
    }
}

/// Whether sandboxed commands reach the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// They do.
    #[default]
    On,
    /// They reach nothing beyond themselves: in namespaces servers of their own, otherwise nothing at all.
    Off,
}

/// Whether commands may make repositories in the project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewRepositories {
    /// Nothing may get the name `.git` below a root.
    #[default]
    Refuse,
    /// They may; what a later git runs there is theirs to say.
    Allow,
}

/// What a session wants, and what the machine can do.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What the session's commands may do.
    pub mode: Mode,
    /// Whether they reach the network.
    pub network: Network,
    /// Whose build caches they write.
    pub caches: Caches,
    /// Whether they may make repositories.
    pub new_repositories: NewRepositories,
    /// What can be enforced here. The default is nothing, so that a target nobody thought about claims nothing.
    pub support: Support,
    /// Files and directories no sandboxed command may see: the daemon's state, configuration and socket.
    pub hidden: Vec<PathBuf>,
}

/// Which sandbox one call runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// None: a person allowed exactly this, or it is the daemon's own command.
    Outside,
    /// The session's.
    Session,
    /// Read-only and without network, because nobody looked at the call.
    ReadOnly,
}

/// The sandbox of one command, as the guard is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub(super) form: Form,
    pub(super) pids: Pids,
    pub(super) mode: Mode,
    pub(super) network: Network,
    pub(super) caches: Caches,
    pub(super) new_repositories: NewRepositories,
    /// The daemon's state directory, covered and used to hold the blanks that cover the rest.
    pub(super) state_dir: PathBuf,
    pub(super) roots: Vec<PathBuf>,
    /// Where the commands' caches are.
    pub(super) home: Option<PathBuf>,
    /// Where keys may lie: that one, and the daemon's own, whatever a client says its home is. Without links.
    pub(super) homes: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// Whether files with names of secrets are hidden inside the roots too.
    pub(super) secrets: Secrets,
}

/// Whether files with names of secrets are hidden inside the roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Secrets {
    Hidden,
    Shown,
}

impl Settings {
    /// The mode that commands really get: off where nothing can be enforced.
    pub fn effective_mode(&self) -> Mode {
        if self.support.form.is_some() {
            self.mode
        } else {
            Mode::Off
        }
    }

    /// Of these and `other` settings, what lets commands reach least.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        let mode = match (self.mode, other.mode) {
            (Mode::ReadOnly, _) | (_, Mode::ReadOnly) => Mode::ReadOnly,
            (Mode::WorkspaceWrite, _) | (_, Mode::WorkspaceWrite) => Mode::WorkspaceWrite,
            (Mode::Off, Mode::Off) => Mode::Off,
        };
        let network = if [self.network, other.network].contains(&Network::Off) {
            Network::Off
        } else {
            Network::On
        };
        let caches = if [self.caches, other.caches].contains(&Caches::Private) {
            Caches::Private
        } else {
            Caches::Shared
        };
        let new_repositories = if self.new_repositories == other.new_repositories {
            self.new_repositories
        } else {
            NewRepositories::Refuse
        };
        Self {
            mode,
            network,
            caches,
            new_repositories,
            ..self.clone()
        }
    }

    /// Whether both let commands do the same.
    pub fn is_as_wide_as(&self, other: &Self) -> bool {
        (self.mode, self.network, self.caches, self.new_repositories)
            == (other.mode, other.network, other.caches, other.new_repositories)
    }

    /// The sandbox of a call; none if it runs outside.
    pub(super) fn profile(&self, confinement: Confinement, target: &Target, state_dir: PathBuf) -> Option<Profile> {
        let (mode, network, secrets) = match confinement {
            Confinement::Outside => return None,
            Confinement::ReadOnly => (Mode::ReadOnly, Network::Off, Secrets::Hidden),
            Confinement::Session => (self.mode, self.network, Secrets::Shown),
        };
        if mode == Mode::Off {
            return None;
        }
        let form = self.support.form?;
        // Without a namespace there is none for processes either.
        let pids = if form == Form::Namespaces {
            self.support.pids
        } else {
            Pids::Shared
        };
        // Doctor and the status line say so where it cannot be refused.
        let new_repositories = match self.support.notices {
            Notices::Missing => NewRepositories::Allow,
            Notices::Had => self.new_repositories,
        };
        Some(Profile {
            form,
            pids,
            mode,
            network,
            caches: self.caches,
            new_repositories,
            state_dir,
            roots: target.standing_roots(),
            home: target.home().map(Into::into),
            homes: homes(target),
            hidden: self.hidden.clone(),
            secrets,
        })
    }
}

fn homes(target: &Target) -> Vec<PathBuf> {
    let own = protocol::place::home().ok();
    let all = target.home().map(Into::into).into_iter().chain(own);
    let mut homes: Vec<PathBuf> = all.filter_map(|home: PathBuf| home.canonicalize().ok()).collect();
    homes.dedup();
    homes
}

/// Variables a sandboxed command needs: where to put temporary files, and caches that the sandbox does not have otherwise.
pub(super) fn variables(profile: &Profile) -> Vec<(String, String)> {
    if profile.mode == Mode::ReadOnly {
        return vec![("TMPDIR".to_owned(), plan::SCRATCH.to_owned())];
    }
    caches::variables(profile)
}

impl Profile {
    /// Whether the guard looks at what the command makes. What cannot be written needs no look.
    fn refuses_repositories(&self) -> bool {
        self.mode == Mode::WorkspaceWrite && self.new_repositories == NewRepositories::Refuse
    }

    /// In words, for results: `workspace-write, no network`.
    pub fn words(&self) -> String {
        let network = if self.network == Network::Off {
            ", no network"
        } else {
            ""
        };
        let reduced = if self.form == Form::Landlock { ", reduced" } else { "" };
        format!("{}{network}{reduced}", self.mode.as_str())
    }
}
