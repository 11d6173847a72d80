//! Repositories that a command finds: it may commit in them and may not change what makes a later git run programs. What
//! is called `.git` is a directory, a link to one, or a file that names one; each leads to the directory with the parts
//! that are kept, wherever in the writable trees it lies.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Plan;
use super::ghosts::Ghosts;

/// Parts of a repository that make a later git run programs.
const FIXED_DIRS: &[&str] = &["hooks", "info", "modules"];
const FIXED_FILES: &[&str] = &["config", "config.worktree", "commondir"];

/// Where a repository keeps what belongs to its further work trees, and those files of each that lead to programs.
const WORKTREES: &str = "worktrees";
const FIXED_OF_WORKTREE: &[&str] = &["config.worktree", "commondir"];

/// Work trees of one repository that are looked at; few people have more than a handful.
const WORKTREES_LIMIT: usize = 64;

/// Bytes of a file that names a directory: a path and a word before it.
const POINTER_LIMIT_BYTES: u64 = 8 * 1024;

/// What a file called `.git` begins with.
const POINTER: &[u8] = b"gitdir:";

/// Whether `path`, which lies in a root, belongs to what is kept; for explanations.
pub(super) fn is_kept(path: &Path) -> bool {
    let mut parts = path.components().map(|part| part.as_os_str());
    if !parts.by_ref().any(super::tree::is_git) {
        return false;
    }
    // The repository itself can be written and not be moved, removed or replaced.
    let part = parts.next();
    part.is_none_or(|part| FIXED_DIRS.iter().chain(FIXED_FILES).any(|fixed| part == *fixed))
}

impl Plan {
    /// Keeps the repository that `git` stands for, if one is there and can be written.
    pub(super) fn keep_repository(&mut self, git: &Path, ghosts: &mut Ghosts) {
        let Ok(found) = git.symlink_metadata() else { return };
        if found.is_dir() {
            self.keep_parts(git, ghosts);
        } else if found.is_file() {
            self.fix(git.to_owned());
            self.keep_named(pointed(git, POINTER), ghosts);
        } else if found.is_symlink() {
            // Over a link nothing can lie. It can be removed, and not be made again.
            match git.canonicalize() {
                Ok(file) if file.is_file() && self.is_writable(&file) => {
                    self.hold_way_to(&file);
                    self.fix(file.clone());
                    self.keep_named(pointed(&file, POINTER), ghosts);
                }
                other => self.keep_named(other.ok(), ghosts),
            }
        }
    }

    /// Keeps a repository that is found by its path alone: it must stay at it.
    fn keep_named(&mut self, git: Option<PathBuf>, ghosts: &mut Ghosts) {
        let Some(git) = git.filter(|git| git.is_dir() && self.is_writable(git)) else {
            return;
        };
        self.hold_way_to(&git);
        self.keep_parts(&git, ghosts);
    }

    fn keep_parts(&mut self, git: &Path, ghosts: &mut Ghosts) {
        if self.pinned.iter().any(|pinned| pinned == git) {
            return;
        }
        self.pinned.push(git.to_owned());
        for name in FIXED_DIRS {
            let path = git.join(name);
            ghosts.stand_in(&path);
            self.fix(path);
        }
        for name in FIXED_FILES {
            self.keep_file(git.join(name), ghosts);
        }
        self.keep_worktrees(&git.join(WORKTREES), ghosts);
        // What is shared by work trees is in another directory.
        self.keep_named(pointed(&git.join("commondir"), b""), ghosts);
    }

    fn keep_file(&mut self, path: PathBuf, ghosts: &mut Ghosts) {
        if path.symlink_metadata().is_err() {
            ghosts.forbid(&path);
        } else {
            self.fix(path);
        }
    }

    /// Keeps what leads from further work trees to programs, where a person may work in them: not those in temporary
    /// directories, which commands make and remove.
    fn keep_worktrees(&mut self, worktrees: &Path, ghosts: &mut Ghosts) {
        let entries = std::fs::read_dir(worktrees).into_iter().flatten().flatten();
        for entry in entries.take(WORKTREES_LIMIT) {
            let own = entry.path();
            let at = pointed(&own.join("gitdir"), b"");
            if at.is_none_or(|at| self.is_writable(&at) && !self.is_in_root(&at)) {
                continue;
            }
            self.hold_way_to(&own);
            self.held.push(own.clone());
            for name in FIXED_OF_WORKTREE {
                self.keep_file(own.join(name), ghosts);
            }
        }
    }

    /// Keeps every directory on the way to `path` where it is, or another could be put in its place.
    fn hold_way_to(&mut self, path: &Path) {
        let Some(tree) = self.tree_of(path).map(Path::to_owned) else {
            return;
        };
        let way = path.ancestors().skip(1).take_while(|above| **above != *tree);
        let missing: Vec<PathBuf> = way.filter(|above| !self.stays(above)).map(Into::into).collect();
        self.held.extend(missing);
    }

    /// Whether something lies at `path` already that keeps it where it is.
    fn stays(&self, path: &Path) -> bool {
        let lists = [&self.pinned, &self.fixed, &self.held, &self.writable];
        lists.iter().any(|list| list.iter().any(|there| there == path))
    }
}

/// The path that a file of git's names, without links; relative ones begin where the file is. None if there is no such file or
/// nothing where it leads.
fn pointed(file: &Path, word: &[u8]) -> Option<PathBuf> {
    let mut text = Vec::new();
    // A pipe would make the reader wait.
    let found = file.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let opened = std::fs::File::open(file)
        .ok()
        .filter(|_| found.len() < POINTER_LIMIT_BYTES)?;
    opened.take(POINTER_LIMIT_BYTES).read_to_end(&mut text).ok()?;
    let path = text.strip_prefix(word)?.trim_ascii();
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    if path.as_os_str().is_empty() {
        return None;
    }
    file.parent()?.join(path).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_what_is_kept_by_its_part_of_the_repository() {
        for kept in [
            "/r/.git",
            "/r/a/.git/config",
            "/r/a/.git/hooks/x",
            "/r/.git/modules/m/HEAD",
        ] {
            assert!(is_kept(Path::new(kept)), "{kept}");
        }
        for free in ["/r/a", "/r/.git/index", "/r/.github/hooks", "/r/.git/objects/config"] {
            assert!(!is_kept(Path::new(free)), "{free}");
        }
    }

    #[test]
    fn a_file_leads_to_the_directory_it_names() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        std::fs::create_dir_all(root.join("real"))?;
        std::fs::create_dir(root.join("sub"))?;
        let file = root.join("sub/.git");
        for (text, leads) in [
            ("gitdir: ../real\n", true),
            (&format!("gitdir: {}", root.join("real").display()), true),
            ("gitdir: ../missing\n", false),
            ("../real\n", false),
            ("gitdir:\n", false),
        ] {
            std::fs::write(&file, text)?;
            assert_eq!(pointed(&file, POINTER), leads.then(|| root.join("real")), "{text}");
        }
        Ok(())
    }
}
