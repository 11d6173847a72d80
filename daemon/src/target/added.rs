//! Which directories a person may add to those a session works in. The project's root is where they stand; an added one is a
//! path they typed, so it is held against what nobody means to hand over: the machine, a whole home directory, keys, and what
//! belongs to the daemon itself.

use std::path::{Path, PathBuf};

use super::names::is_protected;
use super::resolve::SYSTEM_TREES;
use super::sandbox::holds_keys;

/// Directories a session may have beside its project. Before each command the sandbox goes through every one of them.
pub const ADDED_ROOTS_LIMIT: usize = 16;

/// Why a directory cannot be added; for people. It begins with the path as it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotToBeAdded {
    /// It depends on where somebody stands, which the daemon does not know.
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
    /// Nothing is there, or it cannot be looked at.
    #[error("{}: {reason}", .path.display())]
    Unreachable {
        /// As given.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A file or the like.
    #[error("{} is not a directory", .0.display())]
    NoDirectory(PathBuf),
    /// The log, the prompt and people cannot tell it from others.
    #[error("{:?} has characters in its path that cannot be shown", .0)]
    Unspeakable(PathBuf),
    /// The file system as a whole, or a tree that shows the machine.
    #[error("{} is the machine, not a directory to work in", .0.display())]
    Machine(PathBuf),
    /// A home directory, or what holds it.
    #[error("{} is a home directory or holds one", .0.display())]
    Home(PathBuf),
    /// Keys, passwords, or sockets that act for the person.
    #[error("{} is where keys or passwords are kept", .0.display())]
    Keys(PathBuf),
    /// A part of a repository or of a project's configuration, whose files make later commands run code.
    #[error("{} lies in a `.git` or `.agent`, whose files are changed only after asking", .0.display())]
    Protected(PathBuf),
    /// The daemon's state or configuration, or what holds it.
    #[error("{} holds files of agentd itself", .0.display())]
    Own(PathBuf),
}

impl NotToBeAdded {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Relative(_) => "give it from `/` on",
            Self::Unreachable { .. } | Self::NoDirectory(_) => "name a directory that exists",
            Self::Unspeakable(_) => "rename it, or name one that holds it",
            Self::Machine(_) | Self::Home(_) | Self::Own(_) => {
                "name a directory below it that holds what is to be worked on"
            }
            Self::Protected(_) => "name the directory that holds it",
            Self::Keys(_) => "copy what is needed to a directory without keys",
        }
    }
}

/// The directory that `asked` means, without links. `homes` are the person's, `own` the daemon's own directories. Blocks on
/// the file system.
///
/// # Errors
/// A directory that must not be added, with the reason.
pub fn added_root(asked: &Path, homes: &[PathBuf], own: &[PathBuf]) -> Result<PathBuf, NotToBeAdded> {
    let given = || asked.to_path_buf();
    if !asked.is_absolute() {
        return Err(NotToBeAdded::Relative(given()));
    }
    let path = asked.canonicalize().map_err(|error| NotToBeAdded::Unreachable {
        path: given(),
        reason: match error.kind() {
            std::io::ErrorKind::NotFound => "no such directory".to_owned(),
            _ => error.to_string(),
        },
    })?;
    if !path.is_dir() {
        return Err(NotToBeAdded::NoDirectory(given()));
    }
    if path.to_str().is_none_or(|text| text.chars().any(char::is_control)) {
        return Err(NotToBeAdded::Unspeakable(given()));
    }
    if path.parent().is_none() || SYSTEM_TREES.iter().any(|tree| path.starts_with(tree)) {
        return Err(NotToBeAdded::Machine(given()));
    }
    let homes: Vec<PathBuf> = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
    if homes.iter().any(|home| home.starts_with(&path)) {
        return Err(NotToBeAdded::Home(given()));
    }
    let mut own = own.iter().filter_map(|own| own.canonicalize().ok());
    if own.any(|own| own.starts_with(&path) || path.starts_with(own)) {
        return Err(NotToBeAdded::Own(given()));
    }
    if holds_keys(&path, &homes) {
        return Err(NotToBeAdded::Keys(given()));
    }
    if is_protected(&path) {
        return Err(NotToBeAdded::Protected(given()));
    }
    Ok(path)
}

/// Of `asked` those that lie in none of `known` nor in one that stands before them: all others are inside already.
pub fn not_within<'a>(known: impl Iterator<Item = &'a str>, asked: Vec<String>) -> Vec<String> {
    let known: Vec<&Path> = known.map(Path::new).collect();
    let mut fresh: Vec<String> = Vec::new();
    for path in asked {
        let lies_in = |root: &Path| Path::new(&path).starts_with(root);
        if !known.iter().any(|root| lies_in(root)) && !fresh.iter().any(|root| lies_in(Path::new(root))) {
            fresh.push(path);
        }
    }
    fresh
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_nobody_means_to_hand_over_cannot_be_added_by_any_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = base.join("home");
        for made in [
            "home/.ssh/keys",
            "home/.config/agentd",
            "home/work/.git/hooks",
            "home/.aws",
        ] {
            std::fs::create_dir_all(base.join(made)).unwrap();
        }
        std::fs::write(home.join("file"), "x").unwrap();
        symlink("/", base.join("all")).unwrap();
        symlink(&home, base.join("mine")).unwrap();
        symlink(home.join(".ssh"), home.join("work/innocent")).unwrap();
        let added = |asked: &Path| added_root(asked, std::slice::from_ref(&home), &[home.join(".config/agentd")]);
        type Kind = fn(PathBuf) -> NotToBeAdded;
        let refused: &[(&str, Kind)] = &[
            ("work", NotToBeAdded::Relative),
            ("/", NotToBeAdded::Machine),
            ("/..", NotToBeAdded::Machine),
            ("/proc", NotToBeAdded::Machine),
            ("/proc/self/root", NotToBeAdded::Machine),
            ("/dev/shm", NotToBeAdded::Machine),
            ("/sys", NotToBeAdded::Machine),
        ];
        for (asked, kind) in refused {
            assert_eq!(added(Path::new(asked)), Err(kind((*asked).into())), "{asked}");
        }
        let below: &[(&str, Kind)] = &[
            ("all", NotToBeAdded::Machine),
            ("", NotToBeAdded::Home),
            ("home", NotToBeAdded::Home),
            ("mine", NotToBeAdded::Home),
            ("home/.ssh", NotToBeAdded::Keys),
            ("home/.ssh/keys", NotToBeAdded::Keys),
            ("home/work/innocent", NotToBeAdded::Keys),
            ("home/.aws", NotToBeAdded::Keys),
            ("home/.config", NotToBeAdded::Own),
            ("home/.config/agentd", NotToBeAdded::Own),
            ("home/work/.git", NotToBeAdded::Protected),
            ("home/work/.git/hooks", NotToBeAdded::Protected),
            ("home/file", NotToBeAdded::NoDirectory),
        ];
        for (asked, kind) in below {
            let asked = base.join(asked);
            assert_eq!(added(&asked), Err(kind(asked.clone())), "{asked:?}");
        }
        assert!(matches!(added(&base.join("no")), Err(NotToBeAdded::Unreachable { .. })));
        assert_eq!(added(&base.join("mine/work/.")), Ok(home.join("work")));
    }

    #[test]
    fn what_lies_in_a_root_already_is_no_further_one() {
        let asked = ["/p/sub", "/q/a", "/q", "/q/b", "/pp"].map(str::to_owned).to_vec();
        assert_eq!(not_within(["/p"].into_iter(), asked), ["/q/a", "/q", "/pp"]);
    }
}
