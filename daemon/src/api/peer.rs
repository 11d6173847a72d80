//! Who the kernel says is at the other end: uid, pid, and whether it descends from a command of this daemon. What a tool starts may
//! never answer for the person, however it was started; what cannot be looked at counts as a tool.

use rustix::fd::{AsFd, OwnedFd};
use std::io;
use tokio::net::UnixStream;

/// Steps up the tree of processes before one is called endless.
const MAX_ANCESTORS: u32 = 4_096;

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) uid: u32,
    pub(crate) pid: Option<i32>,
    pub(crate) origin: Origin,
}

/// Where a process comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Not started by this daemon.
    Outside,
    /// A descendant of this daemon, of another namespace, gone already, or unknown.
    Inside,
}

/// Looks at the process that connected.
///
/// # Errors
/// When the kernel does not name it.
pub(crate) fn look(stream: &UnixStream) -> io::Result<Peer> {
    let credentials = stream.peer_cred()?;
    let pid = credentials.pid().filter(|pid| *pid > 0);
    let origin = match pid {
        Some(pid) => origin(pid, pidfd(stream).as_ref()),
        None => Origin::Inside,
    };
    Ok(Peer {
        uid: credentials.uid(),
        pid,
        origin,
    })
}

/// A handle of the very process that connected, so that a reused pid is noticed. `None` where the kernel has no such thing.
#[cfg(target_os = "linux")]
fn pidfd(stream: &UnixStream) -> Option<OwnedFd> {
    use rustix::fd::{AsRawFd, FromRawFd};
    let mut fd: libc::c_int = -1;
    let mut length = libc::socklen_t::try_from(size_of::<libc::c_int>()).ok()?;
    // SAFETY: the pointers are to a c_int and its length, which is what SO_PEERPIDFD writes.
    let result = unsafe {
        let value = std::ptr::from_mut(&mut fd).cast();
        libc::getsockopt(
            stream.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            value,
            &raw mut length,
        )
    };
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    (result == 0 && fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(not(target_os = "linux"))]
fn pidfd(_: &UnixStream) -> Option<OwnedFd> {
    None
}

fn origin(pid: i32, pidfd: Option<&OwnedFd>) -> Origin {
    let outside = descends(pid) == Some(false) && same_namespaces(pid) && pidfd.is_none_or(lives);
    if outside { Origin::Outside } else { Origin::Inside }
}

/// Whether the process of this handle has not ended: then what `/proc` said was about it.
fn lives(pidfd: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}

/// Whether `pid` is this process or descends from it; `None` if that cannot be told.
#[cfg(target_os = "linux")]
fn descends(pid: i32) -> Option<bool> {
    let own = i32::try_from(std::process::id()).ok()?;
    let mut pid = pid;
    for _ in 0..MAX_ANCESTORS {
        if pid == own {
            return Some(true);
        }
        if pid <= 1 {
            return Some(false);
        }
        pid = parent(pid)?;
    }
    None
}

#[cfg(not(target_os = "linux"))]
fn descends(_: i32) -> Option<bool> {
    Some(false)
}

#[cfg(target_os = "linux")]
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything; after the last one come state and parent.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Whether the process shares our pid and mount namespaces. One that may not be looked at is no sandbox of ours.
fn same_namespaces(pid: i32) -> bool {
    ["pid", "mnt"].iter().all(|space| {
        let theirs = std::fs::read_link(format!("/proc/{pid}/ns/{space}"));
        let own = std::fs::read_link(format!("/proc/self/ns/{space}"));
        match (theirs, own) {
            (Ok(theirs), Ok(own)) => theirs == own,
            (Err(error), _) => error.kind() == io::ErrorKind::PermissionDenied || !cfg!(target_os = "linux"),
            (_, Err(_)) => true,
        }
    })
}
