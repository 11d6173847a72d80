//! Processes of a command's own: it and all it starts live in a PID namespace, see no other process and cannot name one, and
//! die together when the first process of the namespace does, by the kernel's hand.
//!
//! That first process is not the command, because the first of a namespace ignores signals and must reap orphans. So the
//! process that is to become the command forks twice: the one in between is first, waits, and tells through a pipe who it
//! is and how the command ended. The process that forked it goes away at once, which makes it a child of the guard.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};

use rustix::pipe::PipeFlags;
use rustix::process::{Pid, WaitOptions};

use crate::target::descendants::Status;

/// What an exit code is told by, and what a signal.
const EXITED: u8 = b'e';
const SIGNALLED: u8 = b's';

/// The guard's end of the pipe.
#[derive(Debug)]
pub(in crate::target) struct Hear(File);

/// The end of the processes that become the command. The command itself does not have it.
#[derive(Debug)]
pub(in crate::target) struct Tell(File);

/// A pipe from the first process to the guard.
pub(super) fn channel() -> io::Result<(Hear, Tell)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Hear(reader.into()), Tell(writer.into())))
}

impl Hear {
    /// The first process, as the guard's own namespace numbers it. Call it when the process that was spawned is over.
    pub(in crate::target) fn first(&mut self) -> io::Result<Pid> {
        let mut pid = [0; 4];
        self.0.read_exact(&mut pid)?;
        Pid::from_raw(i32::from_ne_bytes(pid)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// How the command ended; none if the first process was killed before it knew. Call it when that one is over.
    pub(in crate::target) fn status(&mut self) -> Option<Status> {
        let mut said = [0; 2];
        self.0.read_exact(&mut said).ok()?;
        match said {
            [EXITED, code] => Some(Status::Exited(code.into())),
            [SIGNALLED, signal] => Some(Status::Signalled(signal.into())),
            _ => None,
        }
    }
}

/// Goes on as the first process of the namespace made for the children of this process, which ends here.
pub(super) fn enter(tell: &Tell) -> io::Result<()> {
    match fork()? {
        None => Ok(()),
        Some(first) => {
            let told = (&tell.0).write_all(&first.as_raw_nonzero().get().to_ne_bytes());
            // A guard that is not told who to wait for gives the command up.
            leave(i32::from(told.is_err()))
        }
    }
}

/// Goes on as the second process, below this one, which stays until that one ends.
pub(super) fn stay(tell: &Tell) -> io::Result<()> {
    match fork()? {
        None => Ok(()),
        Some(command) => {
            close_all_but(tell.0.as_fd().as_raw_fd());
            let said = match wait_for(command) {
                Some(Status::Exited(code)) => [EXITED, u8::try_from(code).unwrap_or(u8::MAX)],
                Some(Status::Signalled(signal)) => [SIGNALLED, u8::try_from(signal).unwrap_or_default()],
                None => leave(1),
            };
            // With nobody left to hear it there is nobody to tell.
            let _ = (&tell.0).write_all(&said);
            leave(0)
        }
    }
}

/// Reaps whatever ends until the command does.
fn wait_for(command: Pid) -> Option<Status> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => return Status::of(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// The child's pid, or none in the child.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the process has one thread, so the child may do whatever the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Whoever waits for the end of the command's output must not wait for this process, nor who waits for its exec.
#[cfg(target_os = "linux")]
fn close_all_but(kept: i32) {
    let kept = kept.unsigned_abs();
    // SAFETY: this process uses none of these descriptors any more.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0_u32, kept.saturating_sub(1), 0_u32);
        libc::syscall(libc::SYS_close_range, kept.saturating_add(1), u32::MAX, 0_u32);
    }
}

#[cfg(not(target_os = "linux"))]
fn close_all_but(_: i32) {}

fn leave(code: i32) -> ! {
    // SAFETY: ends the process without running what its parent has registered for its own end.
    unsafe { libc::_exit(code) }
}
