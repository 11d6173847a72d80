//! Calls of a sandboxed command that the guard looks at before the kernel does them: the kernel's side of it (seccomp's user
//! notification, seccomp_unotify(2)). All that is unsafe about it is here: a filter is installed, a notification read and
//! answered, the memory of the caller read.
//!
//! The answer is for one waiting call: when its process is gone, the kernel takes no answer, whoever has its number by then.
//! A call that goes on does what its arguments say at that later moment. A process with several threads, or with memory
//! that it shares, can change them in between.
#![cfg(target_os = "linux")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use seccompiler::BpfProgram;

/// Bytes of a path with the zero at its end, as the kernel bounds it.
const PATH_LIMIT_BYTES: usize = 4096;

/// Bytes read at once, from one multiple of it to the next. No page begins in between, so that all of it can be read if its
/// first byte can. Most paths fit in one or two.
const PIECE_BYTES: usize = 256;

/// From `linux/seccomp.h`: who waits for an answer is woken on the processor of who answers.
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// Where notifications are received.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// A call that waits for an answer.
#[derive(Debug)]
pub(super) struct Notification {
    id: u64,
    /// The thread that makes it, as the guard's own namespace numbers it; 0 if it has no number there.
    pub(super) thread: u32,
    /// Which one it is.
    pub(super) call: libc::c_long,
    /// Its arguments.
    pub(super) arguments: [u64; 6],
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The kernel goes on with it.
    GoesOn,
    /// It fails.
    Fails(Errno),
}

/// Installs a filter whose notifications come to the listener. Needs `no_new_privs`; holds for all the process becomes.
pub(super) fn install(program: &BpfProgram) -> io::Result<Listener> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let install = |flags: libc::c_ulong| {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: the structure and the program it names live until the call returns; the kernel copies both.
        unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, std::ptr::from_ref(&filter)) }
    };
    // A signal does not end the wait for an answer, or some programs would make one call twice. Kernels before 5.19 lack it.
    let new = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let mut fd = install(new | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if fd < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        fd = install(new);
    }
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us; it closes at exec.
    Ok(Listener(unsafe { OwnedFd::from_raw_fd(fd) }))
}

impl Listener {
    /// The listener that another process installed.
    pub(super) fn of(fd: OwnedFd) -> Self {
        // Kernels before 6.6 do not know it, and are slower.
        // SAFETY: the request reads its argument as a number.
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        Self(fd)
    }

    /// Waits for the next call; none if it was given up in the meantime.
    ///
    /// # Errors
    /// Nobody is left who could call.
    pub(super) fn next(&self) -> io::Result<Option<Notification>> {
        // SAFETY: the structure is made of numbers, and the kernel wants them to be zero.
        let mut notified: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes a structure of this type.
        let done = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                std::ptr::from_mut(&mut notified),
            )
        };
        if done < 0 {
            let error = io::Error::last_os_error();
            let given_up = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR));
            return if given_up && !self.is_over()? {
                Ok(None)
            } else {
                Err(error)
            };
        }
        Ok(Some(Notification {
            id: notified.id,
            thread: notified.pid,
            call: libc::c_long::from(notified.data.nr),
            arguments: notified.data.args,
        }))
    }

    /// Whether every process with the filter is gone.
    fn is_over(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP)))
    }

    /// Answers.
    ///
    /// # Errors
    /// The call waits no longer, so that nobody was answered.
    pub(super) fn answer(&self, to: &Notification, answer: Answer) -> io::Result<()> {
        let (error, flags) = match answer {
            Answer::GoesOn => (0, 1),
            Answer::Fails(errno) => (-errno.raw_os_error(), 0),
        };
        let mut answer = libc::seccomp_notif_resp {
            id: to.id,
            val: 0,
            error,
            flags,
        };
        // SAFETY: the request reads a structure of this type.
        let done = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                std::ptr::from_mut(&mut answer),
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Notification {
    /// The path that begins at `address` in the caller's memory, without the zero at its end.
    ///
    /// # Errors
    /// The memory cannot be read; the text is longer than a path may be.
    pub(super) fn path_at(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut path = Vec::new();
        while path.len() < PATH_LIMIT_BYTES {
            let at = address.checked_add(path.len() as u64).ok_or(Errno::FAULT)?;
            let mut piece = [0; PIECE_BYTES];
            let before = usize::try_from(at % PIECE_BYTES as u64).map_err(|_| Errno::FAULT)?;
            let piece = piece.get_mut(before..).ok_or(Errno::FAULT)?;
            self.read(at, piece)?;
            let end = piece.iter().position(|byte| *byte == 0);
            path.extend_from_slice(piece.get(..end.unwrap_or(piece.len())).unwrap_or_default());
            if end.is_some() && path.len() < PATH_LIMIT_BYTES {
                return Ok(path);
            }
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Numbers that lie one after the other at `address`.
    pub(super) fn numbers_at<const COUNT: usize>(&self, address: u64) -> Result<[u64; COUNT], Errno> {
        let mut numbers = [0; COUNT];
        for (index, number) in (0_u64..).zip(&mut numbers) {
            let mut bytes = [0; 8];
            self.read(address.checked_add(index * 8).ok_or(Errno::FAULT)?, &mut bytes)?;
            *number = u64::from_ne_bytes(bytes);
        }
        Ok(numbers)
    }

    /// Fills `bytes` with what is at `address`.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let thread = i32::try_from(self.thread).map_err(|_| Errno::SRCH)?;
        let own = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let theirs = libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut(usize::try_from(address).map_err(|_| Errno::FAULT)?),
            iov_len: bytes.len(),
        };
        // SAFETY: the kernel writes at most as many bytes as `bytes` has into it; the other address is of another process,
        // and never used in this one.
        let read = unsafe { libc::process_vm_readv(thread, &raw const own, 1, &raw const theirs, 1, 0) };
        match usize::try_from(read) {
            Ok(read) if read == bytes.len() => Ok(()),
            Ok(_) => Err(Errno::FAULT),
            Err(_) => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }
}
