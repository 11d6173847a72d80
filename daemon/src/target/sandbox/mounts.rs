//! The file system of a sandboxed command: everything read-only, what may be written bound over it, what must not change
//! bound read-only over that, what must not be seen covered. Made in a user and mount namespace of its own, so neither
//! needs privileges nor is seen by anybody else.
#![cfg(target_os = "linux")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::plan::{SCRATCH, TERMINALS};
use super::{Mode as SandboxMode, Network, Pids, Plan, Profile};

/// Size of the file system that holds the blanks; they are empty.
const BLANKS_OPTIONS: &std::ffi::CStr = c"size=64k,nr_inodes=16,mode=0700";

/// Size of the temporary directory of a read-only command: here-documents and the like.
const SMALL_SCRATCH_OPTIONS: &std::ffi::CStr = c"size=64m,mode=1777";

/// The kernel's usual size, half of the memory.
const SCRATCH_OPTIONS: &std::ffi::CStr = c"mode=1777";

/// Terminals that nobody outside has.
const TERMINALS_OPTIONS: &std::ffi::CStr = c"newinstance,ptmxmode=0666,mode=0600";

/// From `linux/mount.h`.
const OPEN_TREE_CLONE: libc::c_int = 1;
const MOVE_MOUNT_EMPTY_PATHS: libc::c_int = 0x4 | 0x40;
const MOUNT_ATTR_RDONLY: u64 = 1;

/// From `linux/mount.h`: what `mount_setattr` reads.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Enters namespaces of its own. The caller keeps its ids and has every capability inside, and none outside.
pub(super) fn unshare(profile: &Profile) -> io::Result<()> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
    if profile.network == Network::Off {
        flags |= libc::CLONE_NEWNET;
    }
    if profile.pids == Pids::Own {
        flags |= libc::CLONE_NEWPID;
    }
    // SAFETY: the process has one thread; nothing else relies on its namespaces.
    check(unsafe { libc::unshare(flags) })?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Lets programs of a network namespace reach each other by the addresses that mean the machine itself. A new one has the
/// interface for it, switched off.
pub(super) fn raise_loopback() -> io::Result<()> {
    let kind = rustix::net::SocketType::DGRAM;
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(rustix::net::AddressFamily::INET, kind, flags, None)?;
    // SAFETY: all zeros is a request with an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = byte.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open, and the request is what the call reads.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) })
}

/// Arranges the file system by the plan.
pub(super) fn arrange(plan: &Plan, profile: &Profile) -> io::Result<()> {
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    let mut writable = Vec::new();
    for path in &plan.writable {
        if let Some(place) = open(path)? {
            writable.push((clone_tree(&place)?, path));
        }
    }
    let root = open(Path::new("/"))?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    make_read_only(&root)?;
    if profile.pids == Pids::Own {
        // The old one shows everybody's processes, under numbers that mean others inside.
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
        mount(Some(c"proc"), Path::new("/proc"), Some(c"proc"), flags, None)?;
    }
    for (tree, path) in writable {
        // The place is looked up again: an earlier tree may lie over it.
        if let Some(place) = open(path)? {
            attach(&tree, &place)?;
        }
    }
    let options = match profile.mode {
        SandboxMode::ReadOnly => SMALL_SCRATCH_OPTIONS,
        SandboxMode::WorkspaceWrite | SandboxMode::Off => SCRATCH_OPTIONS,
    };
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount(Some(c"tmpfs"), Path::new(SCRATCH), Some(c"tmpfs"), flags, Some(options))?;
    let terminals = own_terminals();
    keep(plan)?;
    let others = terminals.is_err().then(|| PathBuf::from(TERMINALS));
    cover(plan.hidden.iter().chain(&others), profile)
}

/// Lays what must stay where it is over itself, and what must stay as it is read-only. Something writable may lie in
/// something that is kept as it is, and the other way round: it is cloned before, and what holds another comes first.
fn keep(plan: &Plan) -> io::Result<()> {
    let mut kept = Vec::new();
    for path in plan.pinned.iter().chain(&plan.held) {
        if let Some(place) = open(path)? {
            kept.push((path, Some(clone_tree(&place)?)));
        }
    }
    kept.extend(plan.fixed.iter().map(|path| (path, None)));
    kept.sort_by_key(|(path, _)| *path);
    for (path, tree) in kept {
        let Some(place) = open(path)? else { continue };
        if let Some(tree) = tree {
            attach(&tree, &place)?;
            continue;
        }
        let tree = clone_tree(&place)?;
        make_read_only(&tree)?;
        attach(&tree, &place)?;
    }
    Ok(())
}

/// Mounts a place for terminals of the command's own.
fn own_terminals() -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount(
        Some(c"devpts"),
        Path::new(TERMINALS),
        Some(c"devpts"),
        flags,
        Some(TERMINALS_OPTIONS),
    )
}

/// Covers what must not be seen with a file or directory that cannot be opened.
fn cover<'a>(hidden: impl Iterator<Item = &'a PathBuf>, profile: &Profile) -> io::Result<()> {
    let state = &profile.state_dir;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some(c"tmpfs"), state, Some(c"tmpfs"), flags, Some(BLANKS_OPTIONS))?;
    let (file, dir) = (state.join("file"), state.join("dir"));
    std::fs::write(&file, "")?;
    std::fs::create_dir(&dir)?;
    let closed = || std::fs::Permissions::from_mode(0o0);
    std::fs::set_permissions(&file, closed())?;
    std::fs::set_permissions(&dir, closed())?;
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let (file, dir) = (open(&file)?.ok_or_else(missing)?, open(&dir)?.ok_or_else(missing)?);
    for path in hidden {
        let Some(place) = open(path)? else { continue };
        let is_dir = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode).is_dir();
        let tree = clone_tree(if is_dir { &dir } else { &file })?;
        make_read_only(&tree)?;
        attach(&tree, &place)?;
    }
    std::fs::set_permissions(state, closed())?;
    make_read_only(&open(state)?.ok_or_else(missing)?)
}

/// A handle of what is at `path` now; none if there is nothing. A link on the way is an error: paths of a plan have none.
fn open(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(fd) => Ok(Some(fd)),
        // What cannot be reached from here cannot be reached by the command either.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A copy of the mount at `place` with all below it, attached to nothing yet.
fn clone_tree(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the descriptor is open and the path is a constant.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags) };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    check(fd)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attach(tree: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open and the paths are constants.
    let done = unsafe {
        let (empty, flags) = (c"".as_ptr(), MOVE_MOUNT_EMPTY_PATHS);
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            empty,
            place.as_raw_fd(),
            empty,
            flags,
        )
    };
    check(i32::try_from(done).map_err(io::Error::other)?)
}

/// Makes a mount and all below it read-only.
fn make_read_only(place: &OwnedFd) -> io::Result<()> {
    let attr = MountAttr {
        set: MOUNT_ATTR_RDONLY,
        clear: 0,
        propagation: 0,
        userns: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the descriptor is open; the structure is what the call reads, and its size is told.
    let done = unsafe {
        let (empty, attr) = (c"".as_ptr(), std::ptr::from_ref(&attr));
        libc::syscall(
            libc::SYS_mount_setattr,
            place.as_raw_fd(),
            empty,
            flags,
            attr,
            size_of::<MountAttr>(),
        )
    };
    check(i32::try_from(done).map_err(io::Error::other)?)
}

fn mount(
    source: Option<&std::ffi::CStr>,
    place: &Path,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
    options: Option<&std::ffi::CStr>,
) -> io::Result<()> {
    let place = CString::new(place.as_os_str().as_bytes())?;
    let pointer = |text: Option<&std::ffi::CStr>| text.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
    // SAFETY: every pointer is null or to a terminated text that lives until the call returns.
    check(unsafe {
        libc::mount(
            pointer(source),
            place.as_ptr(),
            pointer(kind),
            flags,
            pointer(options).cast(),
        )
    })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
