//! Where a session's commands run and its files live: the only code that spawns processes or touches the work tree.
//!
//! A [`Target`] is made once per session and cloned freely. It holds a handle of each root since the session began or
//! the root was added, so one that is renamed or replaced later is noticed instead of followed. Paths are resolved once ([`Target::resolve`]),
//! judged by policy, and then opened by handle without following any link: what was judged is what is opened.
//!
//! Everything here but commands blocks; call it from a blocking task.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

mod added;
pub mod command;
mod confine;
mod descendants;
pub mod environment;
mod git_config;
pub mod guard;
mod harden;
mod inspect;
mod lock;
pub mod names;
pub mod open;
pub mod operands;
mod orphans;
mod project;
pub mod replace;
pub mod resolve;
pub mod sandbox;
mod told;
pub mod walk;

pub use added::{ADDED_ROOTS_LIMIT, NotToBeAdded, added_root, not_within};
pub use command::{CommandEnd, CommandEvent, GuardPlan, INPUT_LIMIT_BYTES, Running};
pub use environment::{command_environment, is_listed, is_personal};
pub use guard::exec_guard;
pub use harden::harden_daemon;
pub use lock::{GuardsRemain, wait_for_guards};
pub use project::project_root;
pub use resolve::Resolved;

/// The local machine as one session sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Target(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    roots: Vec<Arc<Root>>,
    /// Added directories that were not there when they were to be opened.
    gone: Vec<PathBuf>,
    cwd: PathBuf,
    environment: BTreeMap<String, String>,
    hidden: Vec<PathBuf>,
    sandbox: sandbox::Settings,
}

/// What a [`Target`] is made from.
#[derive(Debug, Clone, Default)]
pub struct TargetSpec {
    /// Directories the session works in, the project root first. At least one. Those after it that are gone do not keep the
    /// session from working in the others: nothing is inside of them then, and a path below them says that they are gone.
    pub roots: Vec<PathBuf>,
    /// Where commands start and relative paths begin.
    pub cwd: PathBuf,
    /// The environment of commands, as [`command_environment`] made it.
    pub environment: BTreeMap<String, String>,
    /// Directories no file tool may read or write, whatever was approved: the daemon's own state and configuration.
    pub hidden: Vec<PathBuf>,
    /// What commands may reach.
    pub sandbox: sandbox::Settings,
}

/// A directory the session works in, held open since the session began or the directory was added.
#[derive(Debug)]
pub struct Root {
    /// The path without symbolic links.
    pub path: PathBuf,
    pub(crate) dir: OwnedFd,
    pub(crate) id: FileId,
}

/// Identity of a file or directory: it survives a rename, a replacement has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

impl From<&rustix::fs::Stat> for FileId {
    fn from(stat: &rustix::fs::Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// Why the target could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A root or working directory was deleted, unmounted or replaced since the session began.
    #[error("the directory {} is gone or was replaced since the session began", .0.display())]
    RootGone(PathBuf),
    /// Nothing has this name.
    #[error("{0}: no such file or directory")]
    NotFound(String),
    /// A file was expected and this is a directory.
    #[error("{0}: is a directory; use list_dir to see what is in it")]
    IsDirectory(String),
    /// The file is not what it was when it was looked at.
    #[error("{0} changed while it was being worked on; nothing was written")]
    Changed(String),
    /// The path names something the file tools do not handle; the text says what and what to do instead.
    #[error("{0}")]
    Refused(String),
    /// The system said no.
    #[error("{path}: {source}")]
    Io {
        /// The path as the model wrote it.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl TargetError {
    /// The error for `shown`, with "not found" told apart.
    pub(crate) fn io(shown: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (path, source) = (shown.into(), source.into());
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            _ => Self::Io { path, source },
        }
    }
}

impl Target {
    /// Opens the roots and checks the working directory.
    ///
    /// # Errors
    /// A root or the working directory does not exist or is no directory.
    pub fn open(spec: TargetSpec) -> Result<Self, TargetError> {
        let mut paths = spec.roots.iter();
        let first = paths.next().map(|path| match spec.roots.len() {
            1 => Root::open(path),
            // Whoever works in another root may have put a link in its place.
            _ => Root::open_exactly(path),
        });
        let mut inner = Inner {
            roots: first.transpose()?.into_iter().map(Arc::new).collect(),
            gone: Vec::new(),
            cwd: canonical_directory(&spec.cwd)?,
            environment: spec.environment,
            hidden: spec
                .hidden
                .iter()
                .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
                .collect(),
            sandbox: spec.sandbox,
        };
        inner.add(paths);
        Ok(Self(Arc::new(inner)))
    }

    /// The same place with further roots, `paths` as [`added_root`] made them. Those that are held stay the very directories
    /// they were.
    #[must_use]
    pub fn with_roots(&self, paths: &[PathBuf]) -> Self {
        let mut inner = Inner::clone(&self.0);
        inner.add(paths.iter());
        Self(Arc::new(inner))
    }

    /// The same roots, still the very directories the session began with, for commands with another environment.
    ///
    /// # Errors
    /// The project's root is gone or was replaced.
    pub fn with_environment(&self, environment: BTreeMap<String, String>) -> Result<Self, TargetError> {
        self.roots().first().map_or(Ok(()), |root| root.check())?;
        let inner = Inner::clone(&self.0);
        Ok(Self(Arc::new(Inner { environment, ..inner })))
    }

    /// The same place, whose commands run in another sandbox.
    #[must_use]
    pub fn with_sandbox(&self, sandbox: sandbox::Settings) -> Self {
        let inner = Inner::clone(&self.0);
        Self(Arc::new(Inner { sandbox, ..inner }))
    }

    /// Where commands start, without symbolic links.
    pub fn cwd(&self) -> &Path {
        &self.0.cwd
    }

    /// The roots, the project root first.
    pub fn roots(&self) -> &[Arc<Root>] {
        &self.0.roots
    }

    /// The paths of those roots that are still where they were: what commands may work in.
    pub fn standing_roots(&self) -> Vec<PathBuf> {
        let standing = self.roots().iter().filter(|root| root.check().is_ok());
        standing.map(|root| root.path.clone()).collect()
    }

    /// The added root that `path` lies in and that is gone.
    pub(crate) fn gone_root(&self, path: &Path) -> Option<&Path> {
        self.0
            .gone
            .iter()
            .map(PathBuf::as_path)
            .find(|gone| path.starts_with(gone))
    }

    /// The environment of commands.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.0.environment
    }

    /// `HOME` of the commands' environment.
    pub fn home(&self) -> Option<&Path> {
        self.0
            .environment
            .get("HOME")
            .map(Path::new)
            .filter(|home| home.is_absolute())
    }

    /// What commands may reach.
    pub fn sandbox(&self) -> &sandbox::Settings {
        &self.0.sandbox
    }

    pub(crate) fn hidden(&self) -> &[PathBuf] {
        &self.0.hidden
    }
}

impl Inner {
    /// Opens further roots; notes those that are gone.
    fn add<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) {
        for path in paths {
            if self.roots.iter().any(|root| root.path == *path) {
                continue;
            }
            self.gone.retain(|gone| gone != path);
            match Root::open_exactly(path) {
                Ok(root) => self.roots.push(Arc::new(root)),
                Err(_) => self.gone.push(path.clone()),
            }
        }
    }
}

impl Root {
    /// Opens a directory that was without links when its path was recorded. A link in its place now is another directory.
    fn open_exactly(path: &Path) -> Result<Self, TargetError> {
        let root = Self::open(path)?;
        if root.path == path {
            return Ok(root);
        }
        Err(TargetError::RootGone(path.to_path_buf()))
    }

    fn open(path: &Path) -> Result<Self, TargetError> {
        let path = canonical_directory(path)?;
        let shown = || path.display().to_string();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| TargetError::io(shown(), error))?;
        let id = FileId::from(&rustix::fs::fstat(&dir).map_err(|error| TargetError::io(shown(), error))?);
        Ok(Self { path, dir, id })
    }

    /// Fails if the root's path no longer leads to the directory that was opened.
    pub(crate) fn check(&self) -> Result<(), TargetError> {
        match rustix::fs::stat(&self.path) {
            Ok(stat) if FileId::from(&stat) == self.id => Ok(()),
            _ => Err(TargetError::RootGone(self.path.clone())),
        }
    }
}

fn canonical_directory(path: &Path) -> Result<PathBuf, TargetError> {
    let canonical = path
        .canonicalize()
        .map_err(|error| TargetError::io(path.display().to_string(), error))?;
    if canonical.is_dir() {
        return Ok(canonical);
    }
    Err(TargetError::Refused(format!("{} is not a directory", path.display())))
}
