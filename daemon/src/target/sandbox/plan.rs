//! What a profile means on this machine at this moment, as lists of paths: what can be written, what of it must stay as it
//! is, what must not be seen. Made by the guard right before the command, so it is about the tree as it is.

use std::path::{Path, PathBuf};

use super::ghosts::Ghosts;
use super::{Mode, Profile, Secrets, caches, hidden, secrets};

/// Where a command finds a temporary directory of its own in memory, a small one if it is read-only. The shared one holds
/// what other programs of the person tell each other.
pub(in crate::target) const SCRATCH: &str = "/dev/shm";

/// Temporary directories that every program expects to be able to write.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", SCRATCH];

/// Where terminals are. Commands have their own there or none: on the person's they could read what is typed, and write what
/// no display function has looked at.
pub(super) const TERMINALS: &str = "/dev/pts";

/// Parts of a repository that make a later git run programs.
const GIT_FIXED_DIRS: &[&str] = &["hooks", "info", "modules"];
const GIT_FIXED_FILES: &[&str] = &["config", "config.worktree", "commondir"];

/// Files of the home directory that run at the next login or command: kept as they are where a root holds
/// them.
const HOME_FIXED: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".gitconfig",
    ".config",
    ".local/bin",
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    "bin",
];

/// Lists of absolute paths without links.
#[derive(Debug, Default, Clone)]
pub(in crate::target) struct Plan {
    /// Can be written, with all below.
    pub(super) writable: Vec<PathBuf>,
    /// Can be written but not renamed or removed.
    pub(super) pinned: Vec<PathBuf>,
    /// Cannot be written although it lies in something writable.
    pub(super) fixed: Vec<PathBuf>,
    /// Cannot be seen.
    pub(super) hidden: Vec<PathBuf>,
    /// The tree was too large to look for all secrets in it.
    pub(in crate::target) unseen: bool,
}

impl Plan {
    /// Looks at the file system. Directories that stand in for missing ones are added to `ghosts`.
    pub(in crate::target) fn new(profile: &Profile, ghosts: &mut Ghosts) -> Self {
        let mut plan = Self::default();
        if profile.mode == Mode::WorkspaceWrite {
            caches::make(profile);
            plan.allow_writing(profile);
            for root in &profile.roots {
                plan.protect(root, profile, ghosts);
            }
        }
        plan.hidden = hidden::of(profile);
        if profile.secrets == Secrets::Hidden {
            for root in &profile.roots {
                let found = secrets::below(root);
                plan.unseen |= !found.complete;
                plan.hidden.extend(found.paths);
            }
            // A root may lie in another.
            plan.hidden.sort();
            plan.hidden.dedup();
        }
        plan
    }

    /// What can be written before anything is taken away; used to explain refusals, too.
    pub(super) fn allow_writing(&mut self, profile: &Profile) {
        // The whole machine is no workspace.
        let roots = profile.roots.iter().filter(|root| root.parent().is_some()).cloned();
        let temporary = TEMPORARY.iter().map(PathBuf::from);
        for path in roots.chain(temporary).chain(caches::writable(profile)) {
            let Ok(path) = path.canonicalize() else { continue };
            if path.parent().is_some() && !self.writable.contains(&path) {
                self.writable.push(path);
            }
        }
        // What holds another comes before it.
        self.writable.sort();
    }

    fn protect(&mut self, root: &Path, profile: &Profile, ghosts: &mut Ghosts) {
        let agent = root.join(".agent");
        ghosts.stand_in(&agent);
        self.fix(agent);
        self.protect_repository(root, ghosts);
        let homes = profile.homes.iter();
        let fixed = homes.flat_map(|home| HOME_FIXED.iter().map(|name| home.join(name)));
        for path in fixed.filter(|path| path != root && path.starts_with(root)) {
            self.fix(path);
        }
    }

    fn protect_repository(&mut self, root: &Path, ghosts: &mut Ghosts) {
        let git = root.join(".git");
        match git.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            // A file that names a repository elsewhere, which is not writable.
            Ok(found) if found.is_file() => return self.fix(git),
            _ => return,
        }
        self.pinned.push(git.clone());
        for name in GIT_FIXED_DIRS {
            let path = git.join(name);
            ghosts.stand_in(&path);
            self.fix(path);
        }
        for name in GIT_FIXED_FILES {
            let path = git.join(name);
            if path.symlink_metadata().is_err() {
                ghosts.forbid(&path);
            } else {
                self.fix(path);
            }
        }
    }

    /// Keeps what is at `path` as it is. Through a link nothing can be kept: it would lead a mount elsewhere.
    fn fix(&mut self, path: PathBuf) {
        if path.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
            self.fixed.push(path);
        }
    }
}
