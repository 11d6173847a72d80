//! Spawning a process whose preparation can fail in words: between fork and exec only an error number crosses by itself.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::pipe::PipeFlags;

/// Bytes of a reason; fits any pipe, so writing it never waits.
const REASON_LIMIT_BYTES: u64 = 2048;

/// Spawns `command` after `prepare` ran in the child.
///
/// # Errors
/// What `prepare` said, or why the program cannot be run. The caller must have one thread only.
pub(super) fn spawn(
    mut command: Command,
    mut prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<Child> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let mut writer = std::fs::File::from(writer);
    let tell = move || {
        prepare().inspect_err(|error| {
            // The number crosses all the same.
            let _ = writer.write_all(error.to_string().as_bytes());
        })
    };
    // SAFETY: the caller has one thread, so nothing is held across the fork.
    unsafe { command.pre_exec(tell) };
    let spawned = command.spawn();
    // The last writing end goes with the closure, so reading ends.
    drop(command);
    spawned.map_err(|error| {
        let mut reason = String::new();
        let read = std::fs::File::from(reader)
            .take(REASON_LIMIT_BYTES)
            .read_to_string(&mut reason);
        if read.is_ok() && !reason.is_empty() {
            io::Error::new(error.kind(), reason)
        } else {
            error
        }
    })
}
