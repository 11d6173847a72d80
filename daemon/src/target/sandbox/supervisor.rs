//! No new repository below a root: the guard looks at each call of a command that makes a name, before the kernel does it,
//! and refuses `.git` there. Whoever ran git in such a directory next, a prompt that shows the branch say, would run what
//! its configuration names. Temporary directories, caches and all else outside the roots are free.
//!
//! The process that is to become the command installs the filter and hands the listener over; a thread of the guard answers
//! for as long as anybody can call, while the guard itself hears the daemon. Nobody is kept waiting by a guard that is gone:
//! the kernel then fails the calls. What cannot be looked at is refused. A lookup that fails is answered as the kernel would,
//! which leaves nothing to change its mind.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::lookup::{self, Link, Views};
use super::notify::{self, Answer, Listener, Notification};
use super::passing::{Giver, Taker, way};
use super::{Form, Plan, Profile, syscalls, tree};

/// Refusals that are told; one is enough to say why a command failed.
const REFUSED_LIMIT: usize = 3;

/// The guard's end of the way on which the listener comes.
#[derive(Debug)]
pub(in crate::target) struct Take(Taker);

/// The end of the process that becomes the command.
#[derive(Debug)]
pub(in crate::target) struct Give(Giver);

/// Looks at calls, in a thread of its own.
#[derive(Debug)]
pub(in crate::target) struct Supervisor {
    refused: Arc<Mutex<Vec<PathBuf>>>,
}

/// Knows where no repository may be made.
#[derive(Debug)]
struct Judge {
    plan: Plan,
    form: Form,
    views: Views,
}

/// Why a call does not go on.
#[derive(Debug, PartialEq, Eq)]
enum No {
    /// It would make a repository here.
    Repository(PathBuf),
    /// The kernel would say so, or it cannot be told what the call would do.
    Fails(Errno),
}

/// A name that is made, or taken from its place.
struct Name {
    /// The directory a relative path begins at.
    dir: i32,
    /// Where the path is in the caller's memory.
    path: u64,
}

/// Whether a call that makes a file makes it where a link leads that has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    Followed,
    Kept,
}

/// The way on which the listener comes.
pub(super) fn channel() -> io::Result<(Take, Give)> {
    let (take, give) = way()?;
    Ok((Take(take), Give(give)))
}

impl Give {
    /// From here on calls that make names wait for the guard, so this process must make none before its exec.
    pub(super) fn listener(&self) -> io::Result<()> {
        let listener = notify::install(&syscalls::making_names().map_err(io::Error::other)?)?;
        self.0.give(&[listener.as_fd()])
    }
}

impl Take {
    /// Begins to look at the calls of a command that has begun.
    ///
    /// # Errors
    /// The listener did not come; the command must not go on then.
    pub(in crate::target) fn supervisor(self, plan: Plan, profile: &Profile) -> io::Result<Supervisor> {
        let listener = self.0.take()?.into_iter().next().ok_or(io::ErrorKind::NotFound)?;
        let listener = Listener::of(listener);
        let judge = Judge::new(plan, profile.form);
        let refused = Arc::default();
        let noted = Arc::clone(&refused);
        let serve = move || while serve(&listener, &judge, &noted).is_ok() {};
        // It ends when nobody can call any more, and with this process.
        std::thread::Builder::new().name("supervisor".into()).spawn(serve)?;
        Ok(Supervisor { refused })
    }
}

impl Supervisor {
    /// Where it refused a repository.
    pub(in crate::target) fn refused(&self) -> Vec<PathBuf> {
        locked(&self.refused).clone()
    }
}

/// Answers the next call.
///
/// # Errors
/// There will be none.
fn serve(listener: &Listener, judge: &Judge, noted: &Mutex<Vec<PathBuf>>) -> io::Result<()> {
    let Some(call) = listener.next()? else { return Ok(()) };
    let (answer, refused) = match judge.judge(&call) {
        Ok(()) => (Answer::GoesOn, None),
        Err(No::Fails(errno)) => (Answer::Fails(errno), None),
        Err(No::Repository(path)) => (Answer::Fails(Errno::PERM), Some(path)),
    };
    // Who is answered may end at once, and whoever asks then must be told; so it is noted before.
    let noted_now = refused.is_some_and(|path| note(noted, path));
    // Not taken: the caller is gone, and what was read was perhaps of another with its number.
    if listener.answer(&call, answer).is_err() && noted_now {
        locked(noted).pop();
    }
    Ok(())
}

/// Whether it was added. Only the thread that answers does so.
fn note(noted: &Mutex<Vec<PathBuf>>, path: PathBuf) -> bool {
    let mut noted = locked(noted);
    let is_new = noted.len() < REFUSED_LIMIT && !noted.contains(&path);
    if is_new {
        noted.push(path);
    }
    is_new
}

fn locked(noted: &Mutex<Vec<PathBuf>>) -> MutexGuard<'_, Vec<PathBuf>> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Judge {
    fn new(plan: Plan, form: Form) -> Self {
        let views = Views::default();
        Self { plan, form, views }
    }

    fn judge(&self, call: &Notification) -> Result<(), No> {
        let [one, two, three, four, five, _] = call.arguments;
        let at = |dir: u64, path| Name {
            // The kernel reads no more of it.
            dir: dir as i32,
            path,
        };
        match call.call {
            libc::SYS_openat => self.opened(call, &at(one, two), three),
            libc::SYS_openat2 => {
                let [flags, _, resolve] = call.numbers_at(three)?;
                // A path that takes its directory for the root means another place than it says.
                if flags & CREATE != 0 && resolve & rustix::fs::ResolveFlags::IN_ROOT.bits() != 0 {
                    return Err(Errno::NOSYS.into());
                }
                self.opened(call, &at(one, two), flags)
            }
            libc::SYS_mkdirat | libc::SYS_mknodat => self.made(call, &at(one, two), Links::Kept),
            libc::SYS_symlinkat => self.made(call, &at(two, three), Links::Kept),
            libc::SYS_linkat => self.made(call, &at(three, four), Links::Kept),
            libc::SYS_renameat => self.renamed(call, &at(one, two), &at(three, four), 0),
            libc::SYS_renameat2 => self.renamed(call, &at(one, two), &at(three, four), five),
            #[cfg(target_arch = "x86_64")]
            _ => self.judge_old(call),
            #[cfg(not(target_arch = "x86_64"))]
            _ => Ok(()),
        }
    }

    /// The calls that newer machines lack, whose paths begin at the working directory.
    #[cfg(target_arch = "x86_64")]
    fn judge_old(&self, call: &Notification) -> Result<(), No> {
        let [one, two, ..] = call.arguments;
        let at = |path| Name {
            dir: libc::AT_FDCWD,
            path,
        };
        match call.call {
            libc::SYS_open => self.opened(call, &at(one), two),
            libc::SYS_creat => self.opened(call, &at(one), CREATE),
            libc::SYS_mkdir | libc::SYS_mknod => self.made(call, &at(one), Links::Kept),
            libc::SYS_symlink | libc::SYS_link => self.made(call, &at(two), Links::Kept),
            libc::SYS_rename => self.renamed(call, &at(one), &at(two), 0),
            _ => Ok(()),
        }
    }

    fn opened(&self, call: &Notification, name: &Name, flags: u64) -> Result<(), No> {
        if flags & CREATE == 0 {
            return Ok(());
        }
        let kept = flags & (number(libc::O_EXCL) | number(libc::O_NOFOLLOW)) != 0;
        self.made(call, name, if kept { Links::Kept } else { Links::Followed })
    }

    /// A name is made where there is none; if there is one nothing is made.
    fn made(&self, call: &Notification, name: &Name, links: Links) -> Result<(), No> {
        let lookup = self.views.of(call.thread, name.dir);
        let mut path = call.path_at(name.path)?;
        let mut base = None;
        loop {
            let (parent, last) = split(&path);
            let makes_git = is_git(last);
            if last.is_empty() || (!makes_git && links == Links::Kept) {
                return Ok(());
            }
            if !makes_git && base.is_none() && parent.is_empty() && lookup.is_no_link(last) {
                return Ok(());
            }
            let dir = lookup.directory(base.as_ref(), parent)?;
            match lookup.link(&dir, last)? {
                Link::To(target) if links == Links::Followed => {
                    base = Some(dir);
                    path = target;
                }
                _ if makes_git && !lookup::is_there(&dir, last) => return self.may_hold(&dir, last),
                _ => return Ok(()),
            }
        }
    }

    /// A name goes to another place, whatever has that name by then.
    fn renamed(&self, call: &Notification, from: &Name, to: &Name, flags: u64) -> Result<(), No> {
        let (old, new) = (call.path_at(from.path)?, call.path_at(to.path)?);
        let ((old_parent, old_last), (new_parent, new_last)) = (split(&old), split(&new));
        let exchanged = flags & u64::from(libc::RENAME_EXCHANGE) != 0;
        let makes_git = is_git(new_last) || (exchanged && is_git(old_last));
        // Where mounts keep the trees apart nothing is moved from one to the other but file by file.
        if !makes_git && self.form == Form::Namespaces {
            return Ok(());
        }
        let new_dir = self.views.of(call.thread, to.dir).directory(None, new_parent)?;
        if is_git(new_last) {
            self.may_hold(&new_dir, new_last)?;
        }
        let old_dir = self.views.of(call.thread, from.dir).directory(None, old_parent)?;
        if exchanged && is_git(old_last) {
            self.may_hold(&old_dir, old_last)?;
        }
        let from_elsewhere = self.is_in_root(&new_dir)? && !self.is_in_root(&old_dir)?;
        if from_elsewhere && lookup::is_directory(&old_dir, old_last) {
            return Err(Errno::XDEV.into());
        }
        Ok(())
    }

    fn may_hold(&self, dir: &OwnedFd, name: &[u8]) -> Result<(), No> {
        if self.is_in_root(dir)? {
            let path = lookup::path_of(dir)?.join(OsStr::from_bytes(name));
            return Err(No::Repository(path));
        }
        Ok(())
    }

    fn is_in_root(&self, dir: &OwnedFd) -> Result<bool, No> {
        Ok(self.plan.is_in_root(&lookup::path_of(dir)?))
    }
}

impl From<Errno> for No {
    fn from(errno: Errno) -> Self {
        Self::Fails(errno)
    }
}

fn is_git(name: &[u8]) -> bool {
    tree::is_git(OsStr::from_bytes(name))
}

/// The flag that makes a file.
const CREATE: u64 = number(libc::O_CREAT);

const fn number(flag: libc::c_int) -> u64 {
    flag.unsigned_abs() as u64
}

/// A path without its last part, and that part; empty if it names no entry of a directory.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let path = path.get(..end).unwrap_or_default();
    let begin = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (parent, last) = path.split_at(begin);
    if matches!(last, b"." | b"..") {
        (parent, b"")
    } else {
        (parent, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_at_the_name_it_would_make() {
        let split = |path: &'static str| {
            let (parent, last) = split(path.as_bytes());
            (
                std::str::from_utf8(parent).unwrap_or("?"),
                std::str::from_utf8(last).unwrap_or("?"),
            )
        };
        assert_eq!(split(".git"), ("", ".git"));
        assert_eq!(split("/.git//"), ("/", ".git"));
        assert_eq!(split("a/b//.git"), ("a/b//", ".git"));
        for none in ["", "/", "a/..", "a/./", "."] {
            assert_eq!(split(none).1, "", "{none}");
        }
    }
}
