//! Opening what was resolved, and nothing else: from the handle of a root (outside the roots, of `/`), without following a
//! single link, regular files only. `openat2` does it in one step where the kernel has it; otherwise each component is
//! opened by itself with `O_NOFOLLOW`.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::resolve::Resolved;
use super::{FileId, Target, TargetError};

/// Attempts at an open that a concurrent rename disturbed, before the call fails as changed.
const RACE_ATTEMPTS: usize = 8;

/// `f_type` of the file systems whose "files" show processes and devices, this daemon's secrets among them.
const SYSTEM_FILE_SYSTEMS: &[i64] = &[0x9fa0 /* proc */, 0x6265_6572 /* sysfs */];

/// A regular file, open for reading, and what it was when it was opened.
#[derive(Debug)]
pub struct OpenFile {
    /// Reads from the start; never blocks.
    pub file: File,
    /// Identity, size and times at the open.
    pub stat: Stat,
}

impl OpenFile {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// Reads at most `limit` bytes; `None` if the file is larger.
    pub(crate) fn read_up_to(&mut self, limit: u64, shown: &str) -> Result<Option<Vec<u8>>, TargetError> {
        if self.size() > limit {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.size()).unwrap_or(0) + 1);
        let mut bounded = (&mut self.file).take(limit + 1);
        bounded
            .read_to_end(&mut bytes)
            .map_err(|error| TargetError::io(shown, error))?;
        Ok((bytes.len() as u64 <= limit).then_some(bytes))
    }
}

impl Target {
    /// Opens an existing regular file for reading.
    ///
    /// # Errors
    /// It does not exist, is no regular file, belongs to the daemon itself, or a link appeared on its path.
    pub fn open_file(&self, resolved: &Resolved) -> Result<OpenFile, TargetError> {
        self.check_not_hidden(resolved)?;
        let shown = resolved.shown.as_str();
        // A device must not even be opened, since that can have effects; so the name is looked at before.
        let seen = self.open_at(resolved, OFlags::PATH)?;
        let stat = stat_of(&seen, shown)?;
        check_regular(&stat, &seen, shown)?;
        let file = self.open_at(resolved, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat_now = stat_of(&file, shown)?;
        if FileId::from(&stat_now) != FileId::from(&stat) {
            return Err(TargetError::Changed(shown.to_string()));
        }
        Ok(OpenFile {
            file: File::from(file),
            stat: stat_now,
        })
    }

    /// A handle of an existing directory.
    pub(crate) fn open_directory(&self, resolved: &Resolved) -> Result<OwnedFd, TargetError> {
        self.check_not_hidden(resolved)?;
        self.open_at(resolved, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// The identity of an existing directory.
    pub fn directory_id(&self, resolved: &Resolved) -> Result<FileId, TargetError> {
        let dir = self.open_directory(resolved)?;
        Ok(FileId::from(&stat_of(&dir, &resolved.shown)?))
    }

    /// The identity of the working directory.
    pub fn cwd_id(&self) -> Result<FileId, TargetError> {
        let stat = rustix::fs::stat(self.cwd()).map_err(|_| TargetError::RootGone(self.cwd().to_path_buf()))?;
        Ok(FileId::from(&stat))
    }

    fn open_at(&self, resolved: &Resolved, flags: OFlags) -> Result<OwnedFd, TargetError> {
        let anchor = self.anchor(resolved)?;
        open_beneath(anchor.dir.as_fd(), &anchor.rest, flags).map_err(|errno| open_error(resolved, errno))
    }

    /// The handle a resolved path is opened from, and the rest of the path.
    pub(crate) fn anchor(&self, resolved: &Resolved) -> Result<Anchor<'_>, TargetError> {
        let Some(root) = resolved.root.and_then(|index| self.roots().get(index)) else {
            if let Some(gone) = self.gone_root(&resolved.path) {
                return Err(TargetError::RootGone(gone.to_path_buf()));
            }
            let dir = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| TargetError::io("/", error))?;
            return Ok(Anchor {
                dir: Handle::Owned(dir),
                rest: relative(&resolved.path, Path::new("/")),
            });
        };
        root.check()?;
        Ok(Anchor {
            dir: Handle::Borrowed(root.dir.as_fd()),
            rest: relative(&resolved.path, &root.path),
        })
    }

    /// Refuses what belongs to the daemon: a file tool must not hand out its token or rewrite its rules.
    pub(crate) fn check_not_hidden(&self, resolved: &Resolved) -> Result<(), TargetError> {
        if self.hidden().iter().any(|hidden| resolved.path.starts_with(hidden)) {
            return Err(TargetError::Refused(format!(
                "{}: belongs to agentd itself and is out of reach",
                resolved.shown
            )));
        }
        Ok(())
    }
}

/// Where opening a resolved path begins.
pub(crate) struct Anchor<'a> {
    pub(crate) dir: Handle<'a>,
    /// Relative to `dir`; `.` for the directory itself.
    pub(crate) rest: PathBuf,
}

pub(crate) enum Handle<'a> {
    Borrowed(BorrowedFd<'a>),
    Owned(OwnedFd),
}

impl AsFd for Handle<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(fd) => *fd,
            Self::Owned(fd) => fd.as_fd(),
        }
    }
}

fn relative(path: &Path, base: &Path) -> PathBuf {
    match path.strip_prefix(base) {
        Ok(rest) if !rest.as_os_str().is_empty() => rest.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Opens `rest` below `dir` without following any link.
pub(crate) fn open_beneath(dir: BorrowedFd<'_>, rest: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let fd = open_at_once(dir, rest, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW)?;
    // With O_PATH a link at the end is itself opened instead of refused.
    if flags.contains(OFlags::PATH) && FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    Ok(fd)
}

#[cfg(target_os = "linux")]
fn open_at_once(dir: BorrowedFd<'_>, rest: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    for _ in 0..RACE_ATTEMPTS {
        match rustix::fs::openat2(dir, rest, flags, Mode::empty(), how) {
            Err(Errno::AGAIN) => {}
            // Old kernels lack the call, and some containers answer "not permitted" to calls they do not know.
            Err(Errno::NOSYS | Errno::PERM) => break,
            done => return done,
        }
    }
    open_stepwise(dir, rest, flags)
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(dir: BorrowedFd<'_>, rest: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_stepwise(dir, rest, flags)
}

fn open_stepwise(dir: BorrowedFd<'_>, rest: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::fs::openat(dir, ".", step, Mode::empty())?;
    let mut components = rest.components().peekable();
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => return Err(Errno::XDEV),
        };
        if components.peek().is_none() {
            return rustix::fs::openat(&here, name, flags, Mode::empty());
        }
        here = rustix::fs::openat(&here, name, step, Mode::empty())?;
    }
    rustix::fs::openat(&here, ".", flags, Mode::empty())
}

/// What an errno of a guarded open means: a link or a changed type can only have come after the path was resolved.
pub(crate) fn open_error(resolved: &Resolved, errno: Errno) -> TargetError {
    match errno {
        Errno::LOOP | Errno::XDEV | Errno::AGAIN => TargetError::Changed(resolved.shown.clone()),
        Errno::NOTDIR => TargetError::Refused(format!("{}: not a directory", resolved.shown)),
        Errno::NXIO => TargetError::Refused(format!("{}: is a special file", resolved.shown)),
        errno => TargetError::io(resolved.shown.as_str(), errno),
    }
}

pub(crate) fn stat_of(fd: impl AsFd, shown: &str) -> Result<Stat, TargetError> {
    rustix::fs::fstat(fd).map_err(|error| TargetError::io(shown, error))
}

fn check_regular(stat: &Stat, fd: impl AsFd, shown: &str) -> Result<(), TargetError> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return check_file_system(fd, shown),
        FileType::Directory => return Err(TargetError::IsDirectory(shown.to_string())),
        FileType::Fifo => "is a named pipe, not a regular file",
        FileType::Socket => "is a socket, not a regular file",
        FileType::CharacterDevice | FileType::BlockDevice => "is a device, not a regular file",
        _ => "is not a regular file",
    };
    Err(TargetError::Refused(format!("{shown}: {kind}")))
}

#[cfg(target_os = "linux")]
fn check_file_system(fd: impl AsFd, shown: &str) -> Result<(), TargetError> {
    let kind = rustix::fs::fstatfs(fd)
        .map_err(|error| TargetError::io(shown, error))?
        .f_type;
    #[allow(clippy::unnecessary_cast, reason = "the type of f_type differs between platforms")]
    if SYSTEM_FILE_SYSTEMS.contains(&(kind as i64)) {
        return Err(TargetError::Refused(format!(
            "{shown}: shows the system, not a file; use a command to look at it"
        )));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_file_system(_fd: impl AsFd, _shown: &str) -> Result<(), TargetError> {
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::target::TargetSpec;

    fn target(dir: &Path) -> Target {
        Target::open(TargetSpec {
            roots: vec![dir.into()],
            cwd: dir.into(),
            ..TargetSpec::default()
        })
        .unwrap()
    }

    fn why(result: Result<OpenFile, TargetError>) -> String {
        result.map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn special_files_are_refused_at_once_and_say_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let target = target(dir.path());
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("pipe"), Mode::RWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        let open = |shown: &str| why(target.open_file(&target.resolve(shown).unwrap()));
        assert!(open("pipe").contains("named pipe"));
        assert!(open("socket").contains("socket"));
        assert!(open(".").contains("directory"));
        assert!(open("/dev/zero").contains("device"));
        assert!(
            open("/proc/self/environ").contains("shows the system"),
            "{}",
            open("/proc/self/environ")
        );
        assert!(open("absent").contains("no such file"));
    }

    #[test]
    fn a_link_that_appears_after_resolution_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        let target = target(dir.path());
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/file"), "x").unwrap();
        let (file, deep) = (target.resolve("sub/file").unwrap(), target.resolve("sub/new").unwrap());
        std::fs::remove_file(dir.path().join("sub/file")).unwrap();
        symlink(outside.path(), dir.path().join("sub/file")).unwrap();
        assert!(matches!(target.open_file(&file), Err(TargetError::Changed(_))));
        std::fs::rename(dir.path().join("sub"), dir.path().join("moved")).unwrap();
        symlink("moved", dir.path().join("sub")).unwrap();
        assert!(matches!(target.open_file(&deep), Err(TargetError::Changed(_))));
    }

    #[test]
    fn opening_step_by_step_refuses_the_same_links() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/file"), "x").unwrap();
        symlink("sub", dir.path().join("link")).unwrap();
        symlink("sub/file", dir.path().join("flink")).unwrap();
        let root = rustix::fs::open(dir.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let open =
            |path: &str, flags| open_stepwise(root.as_fd(), Path::new(path), flags | OFlags::NOFOLLOW).map(|_| ());
        for flags in [OFlags::RDONLY, OFlags::PATH] {
            assert_eq!(open("sub/file", flags), Ok(()));
            assert_eq!(open(".", flags), Ok(()));
            assert!(open("link/file", flags).is_err());
            assert!(open("../x", flags).is_err());
        }
        assert_eq!(open("flink", OFlags::RDONLY), Err(Errno::LOOP));
    }

    #[test]
    fn a_replaced_root_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let target = target(&root);
        let file = target.resolve("file").unwrap();
        std::fs::rename(&root, dir.path().join("old")).unwrap();
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        assert!(matches!(target.open_file(&file), Err(TargetError::RootGone(_))));
    }

    #[test]
    fn the_daemons_own_directories_are_out_of_reach() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("token"), "x").unwrap();
        symlink("state/token", dir.path().join("innocent")).unwrap();
        let spec = TargetSpec {
            roots: vec![dir.path().into()],
            cwd: dir.path().into(),
            hidden: vec![state],
            ..Default::default()
        };
        let target = Target::open(spec).unwrap();
        for shown in ["state/token", "innocent"] {
            assert!(why(target.open_file(&target.resolve(shown).unwrap())).contains("belongs to agentd"));
        }
    }
}
