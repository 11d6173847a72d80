//! Where a path leads for another process: from its working directory or one of its descriptors, in its file system, by the
//! links that are there. The kernel does it in one step; what that cannot do, which is to go through `/proc` as somebody
//! else, is done part by part.
#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Links followed for one path, as in the kernel.
const LINKS_LIMIT: u32 = 40;

/// A handle that only says which directory it is.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What the processes of one command see. None of them can change its root directory.
#[derive(Debug, Default)]
pub(super) struct Views {
    root: OnceLock<OwnedFd>,
}

/// One path of one thread, which is looked up once.
#[derive(Debug)]
pub(super) struct Lookup<'a> {
    views: &'a Views,
    thread: u32,
    /// What a relative path begins at: a descriptor, or `AT_FDCWD`.
    dir: i32,
    links: Cell<u32>,
}

/// What a link says, or that there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// It leads to this path.
    To(Vec<u8>),
    /// Nothing has the name, or something that is no link.
    None,
}

impl Views {
    /// For a path that begins at `dir`, if it is a relative one.
    pub(super) fn of(&self, thread: u32, dir: i32) -> Lookup<'_> {
        let (views, links) = (self, Cell::new(0));
        Lookup {
            views,
            thread,
            dir,
            links,
        }
    }
}

impl Lookup<'_> {
    /// Whether `name`, right where relative paths begin, is surely no link; by the fewest steps, since most are none.
    pub(super) fn is_no_link(&self, name: &[u8]) -> bool {
        let path = self.proc(&self.begin()).join(OsStr::from_bytes(name));
        let mut byte = [0_u8; 1];
        let said = rustix::fs::readlinkat_raw(CWD, path, &mut byte);
        matches!(said, Err(Errno::INVAL | Errno::NOENT))
    }

    /// The directory that `path` names; relative ones begin at `base`, or where the thread's own do.
    pub(super) fn directory(&self, base: Option<&OwnedFd>, path: &[u8]) -> Result<OwnedFd, Errno> {
        let (start, within) = if path.starts_with(b"/") {
            (self.root()?, ResolveFlags::IN_ROOT)
        } else {
            let start = match base {
                Some(base) => base.try_clone().map_err(|_| Errno::MFILE)?,
                None => self.own(&self.begin()).map_err(no_descriptor)?,
            };
            (start, ResolveFlags::BENEATH)
        };
        if path.is_empty() {
            return Ok(start);
        }
        let at_once = within | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&start, path, PLACE, Mode::empty(), at_once) {
            Ok(found) => Ok(found),
            Err(_) => self.by_parts(start, path),
        }
    }

    /// Follows the link `name` in `dir`.
    pub(super) fn link(&self, dir: &OwnedFd, name: &[u8]) -> Result<Link, Errno> {
        match rustix::fs::readlinkat(dir, name, Vec::new()) {
            // In `/proc` a link leads to what is there already.
            Ok(_) if is_proc(dir) => Ok(Link::None),
            Ok(text) => {
                self.count()?;
                Ok(Link::To(text.into_bytes()))
            }
            Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => Ok(Link::None),
            Err(errno) => Err(errno),
        }
    }

    /// Goes as the kernel would for the thread itself.
    fn by_parts(&self, start: OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut dir = start;
        let mut ahead = parts(path);
        while let Some(part) = ahead.pop_front() {
            if is_proc(&dir) {
                dir = self.through_proc(&dir, &part)?;
                continue;
            }
            let found = rustix::fs::openat(
                &dir,
                &part[..],
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
            if kind == FileType::Directory {
                dir = found;
                continue;
            }
            if kind != FileType::Symlink {
                return Err(Errno::NOTDIR);
            }
            self.count()?;
            let text = rustix::fs::readlinkat(&found, "", Vec::new())?.into_bytes();
            if text.starts_with(b"/") {
                dir = self.root()?;
            }
            for part in parts(&text).into_iter().rev() {
                ahead.push_front(part);
            }
        }
        Ok(dir)
    }

    /// Goes on from a directory of `/proc`, where `self` is whoever asks and other links lead to what a process has open.
    fn through_proc(&self, dir: &OwnedFd, part: &[u8]) -> Result<OwnedFd, Errno> {
        if matches!(part, b"self" | b"thread-self") {
            return self.own("");
        }
        rustix::fs::openat(dir, part, PLACE, Mode::empty())
    }

    /// Where relative paths begin, as `/proc` calls it.
    fn begin(&self) -> String {
        if self.dir == libc::AT_FDCWD {
            "cwd".to_owned()
        } else {
            format!("fd/{}", self.dir)
        }
    }

    fn root(&self) -> Result<OwnedFd, Errno> {
        if self.views.root.get().is_none() {
            // Another thread of this process would have found the same one.
            let _ = self.views.root.set(self.own("root")?);
        }
        let root = self.views.root.get().ok_or(Errno::NOENT)?;
        root.try_clone().map_err(|_| Errno::MFILE)
    }

    /// What `/proc` has of the thread under this name.
    fn own(&self, name: &str) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(CWD, self.proc(name), PLACE, Mode::empty())
    }

    fn proc(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.thread).into()
    }

    fn count(&self) -> Result<(), Errno> {
        self.links.set(self.links.get() + 1);
        if self.links.get() > LINKS_LIMIT {
            return Err(Errno::LOOP);
        }
        Ok(())
    }
}

/// What the kernel says to who names a descriptor that is not there.
fn no_descriptor(errno: Errno) -> Errno {
    if errno == Errno::NOENT { Errno::BADF } else { errno }
}

/// The path of a directory as the process sees it, whose file system may be arranged otherwise than this one's.
pub(super) fn path_of(dir: &OwnedFd) -> Result<PathBuf, Errno> {
    use std::os::fd::AsRawFd;
    let own = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
    let path = rustix::fs::readlinkat(CWD, own, Vec::new())?;
    Ok(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

/// Whether something has the name in `dir`.
pub(super) fn is_there(dir: &OwnedFd, name: &[u8]) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Whether a directory has the name in `dir`.
pub(super) fn is_directory(dir: &OwnedFd, name: &[u8]) -> bool {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

fn is_proc(dir: &OwnedFd) -> bool {
    rustix::fs::fstatfs(dir).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

fn parts(path: &[u8]) -> VecDeque<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/');
    parts
        .filter(|part| !matches!(*part, b"" | b"."))
        .map(<[u8]>::to_vec)
        .collect()
}
