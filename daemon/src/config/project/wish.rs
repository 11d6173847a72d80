//! What a project says of the sandbox, and what that makes of the person's own settings: no less strict than either, until the file is
//! trusted.

use std::cmp::Reverse;

use super::keys::Keys;
use crate::config::load::{WrittenSandbox, network};
use crate::config::{SandboxCaches, SandboxMode, SandboxNetwork, SandboxRepositories, SandboxSettings};

/// The `[sandbox]` of a project's file, as far as it counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxWish {
    mode: Option<SandboxMode>,
    network: Option<SandboxNetwork>,
    caches: Option<SandboxCaches>,
    new_repositories: Option<SandboxRepositories>,
    /// Whether it may widen.
    trusted: bool,
}

impl SandboxWish {
    /// What of `written` counts beside the person's `own` settings; `keys` is told what does not.
    pub(super) fn read(written: &WrittenSandbox, own: SandboxSettings, keys: &mut Keys<'_>, trusted: bool) -> Self {
        Self {
            mode: keys.narrowed("sandbox.mode", written.mode, own.mode, mode),
            network: keys.narrowed("sandbox.network", written.network.map(network), own.network, is_off),
            caches: keys.narrowed("sandbox.caches", written.caches, own.caches, are_private),
            new_repositories: keys.narrowed(
                "sandbox.new_repositories",
                written.new_repositories,
                own.new_repositories,
                are_refused,
            ),
            trusted,
        }
    }

    /// What commands may reach where a project wishes this and the person's settings are `own`. They may have changed since the file was
    /// read, so what does not narrow is looked for again.
    #[must_use]
    pub fn within(self, own: SandboxSettings) -> SandboxSettings {
        let mut settings = own;
        settings.mode = self.stricter(self.mode, own.mode, mode);
        settings.network = self.stricter(self.network, own.network, is_off);
        settings.caches = self.stricter(self.caches, own.caches, are_private);
        settings.new_repositories = self.stricter(self.new_repositories, own.new_repositories, are_refused);
        settings
    }

    fn stricter<T: Copy, S: Ord>(self, wished: Option<T>, own: T, strictness: fn(T) -> S) -> T {
        match wished {
            Some(wished) if self.trusted || strictness(wished) > strictness(own) => wished,
            _ => own,
        }
    }
}

fn mode(mode: SandboxMode) -> Reverse<u8> {
    Reverse(match mode {
        SandboxMode::ReadOnly => 0,
        SandboxMode::WorkspaceWrite => 1,
        SandboxMode::Off => 2,
    })
}

fn is_off(network: SandboxNetwork) -> bool {
    network == SandboxNetwork::Off
}

fn are_private(caches: SandboxCaches) -> bool {
    caches == SandboxCaches::Private
}

fn are_refused(repositories: SandboxRepositories) -> bool {
    repositories == SandboxRepositories::Refuse
}
