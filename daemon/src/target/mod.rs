//! Where a session's commands run and its files live: the only code that spawns processes or touches the work tree.
//!
//! A [`Target`] is made once per session and cloned freely. It holds a handle of each root since the session began, so a
//! root that is renamed or replaced later is noticed instead of followed. Paths are resolved once ([`Target::resolve`]),
//! judged by policy, and then opened by handle without following any link: what was judged is what is opened.
//!
//! Everything here but commands blocks; call it from a blocking task.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

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

pub use command::{CommandEnd, CommandEvent, GuardPlan, INPUT_LIMIT_BYTES, Running};
pub use environment::{command_environment, is_listed, is_personal};
pub use guard::exec_guard;
pub use harden::harden_daemon;
pub use lock::{GuardsRemain, wait_for_guards};
pub(crate) use open::OpenFile;
pub use project::project_root;
pub use resolve::Resolved;

/// The local machine as one session sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Target(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    roots: Arc<[Root]>,
    cwd: PathBuf,
    environment: BTreeMap<String, String>,
    hidden: Vec<PathBuf>,
    sandbox: sandbox::Settings,
}

/// What a [`Target`] is made from.
#[derive(Debug, Clone, Default)]
pub struct TargetSpec {
    /// Directories the session works in, the project root first. At least one.
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

/// A directory the session works in, held open since the session began.
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
        let roots = spec
            .roots
            .iter()
            .map(|path| Root::open(path))
            .collect::<Result<_, _>>()?;
        let cwd = canonical_directory(&spec.cwd)?;
        let hidden = spec
            .hidden
            .iter()
            .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
            .collect();
        Ok(Self(Arc::new(Inner {
            roots,
            cwd,
            environment: spec.environment,
            hidden,
            sandbox: spec.sandbox,
        })))
    }

    /// The same roots, still the very directories the session began with, for commands with another environment.
    ///
    /// # Errors
    /// A root is gone or was replaced.
    pub fn with_environment(&self, environment: BTreeMap<String, String>) -> Result<Self, TargetError> {
        self.roots().iter().try_for_each(Root::check)?;
        let Inner {
            roots,
            cwd,
            hidden,
            sandbox,
            ..
        } = &*self.0;
        let (roots, cwd, hidden, sandbox) = (Arc::clone(roots), cwd.clone(), hidden.clone(), sandbox.clone());
        Ok(Self(Arc::new(Inner {
            roots,
            cwd,
            environment,
            hidden,
            sandbox,
        })))
    }

    /// The same place, whose commands run in another sandbox.
    #[must_use]
    pub fn with_sandbox(&self, sandbox: sandbox::Settings) -> Self {
        let Inner {
            roots,
            cwd,
            environment,
            hidden,
            ..
        } = &*self.0;
        let (roots, cwd, hidden) = (Arc::clone(roots), cwd.clone(), hidden.clone());
        Self(Arc::new(Inner {
            roots,
            cwd,
            environment: environment.clone(),
            hidden,
            sandbox,
        }))
    }

    /// Where commands start, without symbolic links.
    pub fn cwd(&self) -> &Path {
        &self.0.cwd
    }

    /// The roots, the project root first.
    pub fn roots(&self) -> &[Root] {
        &self.0.roots
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

impl Root {
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
