//! What a profile means on this machine at this moment, as lists of paths: what can be written, what of it must stay as it
//! is, what must not be seen. Made by the guard right before the command, so it is about the tree as it is.

use std::path::{Path, PathBuf};

use super::ghosts::Ghosts;
use super::tree::{self, GIT, Wanted};
use super::{Mode, Profile, Secrets, caches, hidden};

/// Where a command finds a temporary directory of its own in memory, a small one if it is read-only. The shared one holds
/// what other programs of the person tell each other.
pub(in crate::target) const SCRATCH: &str = "/dev/shm";

/// Temporary directories that every program expects to be able to write.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", SCRATCH];

/// Where terminals are. Commands have their own there or none: on the person's they could read what is typed, and write what
/// no display function has looked at.
pub(super) const TERMINALS: &str = "/dev/pts";

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
    /// Those of them in which the session works.
    pub(super) roots: Vec<PathBuf>,
    /// Repositories: can be written but not renamed or removed.
    pub(super) pinned: Vec<PathBuf>,
    /// Other directories that can be written but not renamed or removed.
    pub(super) held: Vec<PathBuf>,
    /// Cannot be written although it lies in something writable.
    pub(super) fixed: Vec<PathBuf>,
    /// Cannot be seen.
    pub(super) hidden: Vec<PathBuf>,
    /// The tree was too large to look for all secrets in it.
    pub(in crate::target) unseen: bool,
    /// The tree was too large, or held too many, to keep all of its repositories.
    pub(in crate::target) unkept: bool,
}

/// Those files of the homes that a root holds.
pub(super) fn fixed_at_home(root: &Path, profile: &Profile) -> impl Iterator<Item = PathBuf> {
    let homes = profile.homes.iter();
    let fixed = homes.flat_map(|home| HOME_FIXED.iter().map(|name| home.join(name)));
    fixed.filter(move |path| path != root && path.starts_with(root))
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
                let found = tree::below(root, Wanted::Secrets);
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
        let is_root = |path: &&PathBuf| profile.roots.contains(path);
        self.roots = self.writable.iter().filter(is_root).cloned().collect();
    }

    /// The writable tree that decides about `path`: of those that hold it the smallest.
    pub(super) fn tree_of(&self, path: &Path) -> Option<&Path> {
        let holding = self.writable.iter().filter(|tree| path.starts_with(tree));
        holding.max_by_key(|tree| tree.as_os_str().len()).map(PathBuf::as_path)
    }

    /// Whether `path` lies in something writable.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.tree_of(path).is_some()
    }

    /// Whether `path` belongs to the project, and not to a temporary directory or a cache below its root.
    pub(super) fn is_in_root(&self, path: &Path) -> bool {
        let tree = self.tree_of(path);
        tree.is_some_and(|tree| self.roots.iter().any(|root| root == tree))
    }

    fn protect(&mut self, root: &Path, profile: &Profile, ghosts: &mut Ghosts) {
        let agent = root.join(".agent");
        ghosts.stand_in(&agent);
        self.fix(agent);
        self.protect_repositories(root, ghosts);
        for path in fixed_at_home(root, profile) {
            self.fix(path);
        }
    }

    fn protect_repositories(&mut self, root: &Path, ghosts: &mut Ghosts) {
        // However large the tree is, its own comes first.
        self.keep_repository(&root.join(GIT), ghosts);
        if !self.is_in_root(root) {
            return;
        }
        let mut found = tree::below(root, Wanted::Repositories);
        self.unkept |= !found.complete;
        found.paths.retain(|git| self.is_in_root(git));
        for git in found.paths {
            self.keep_repository(&git, ghosts);
        }
    }

    /// Keeps what is at `path` as it is. Through a link nothing can be kept: it would lead a mount elsewhere.
    pub(super) fn fix(&mut self, path: PathBuf) {
        if !self.fixed.contains(&path) && path.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
            self.fixed.push(path);
        }
    }
}
