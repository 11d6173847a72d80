//! What a command becomes between fork and exec: nothing of the daemon's is left to it but its output pipe. Runs in the
//! guard's child, which has one thread, so ordinary code is allowed.

use std::io;

use rustix::process::{Resource, Rlimit};

/// Preferred victim when memory runs out: rather the command than the daemon.
const OOM_SCORE: &str = "500";

/// Signals a guard ignores: only its control pipe ends it.
pub(super) const GUARD_IGNORES: [i32; 6] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Capabilities with which a command could read the daemon's memory or take over the machine below it.
#[cfg(target_os = "linux")]
const DROPPED: [rustix::thread::CapabilitySet; 6] = {
    use rustix::thread::CapabilitySet as Set;
    [
        Set::SYS_PTRACE,
        Set::SYS_ADMIN,
        Set::SYS_MODULE,
        Set::SYS_RAWIO,
        Set::BPF,
        Set::PERFMON,
    ]
};

/// The classic signals, all of which a command gets with their usual effect, whatever the daemon was started with.
const CLASSIC_SIGNALS: std::ops::RangeInclusive<i32> = 1..=31;

/// Prepares the calling process for the exec of a command.
pub(super) fn confine(umask: u32, nofile_soft: Option<u64>) -> io::Result<()> {
    for signal in CLASSIC_SIGNALS {
        // SAFETY: sets a disposition to a constant; no handler is involved, and those that cannot be set stay as they are.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // The score is a courtesy to the daemon; without /proc the command runs all the same.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit {
            current: nofile_soft,
            maximum,
        },
    )?;
    rustix::process::setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(umask));
    drop_capabilities()?;
    close_on_exec();
    Ok(())
}

/// Takes the dangerous capabilities from a privileged daemon's command for good. An unprivileged one has none to lose, and
/// keeps its way to `sudo`, which a person has to approve.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> io::Result<()> {
    use rustix::thread;
    let mut sets = thread::capabilities(None)?;
    if sets.effective.is_empty() {
        return Ok(());
    }
    for capability in DROPPED {
        // A kernel that does not know the capability cannot grant it either.
        if matches!(thread::capability_is_in_bounding_set(capability), Ok(true)) {
            thread::remove_capability_from_bounding_set(capability)?;
        }
        sets.effective.remove(capability);
        sets.permitted.remove(capability);
        sets.inheritable.remove(capability);
    }
    // Kernels before 4.3 have no ambient set, and nothing in it.
    let _ = thread::clear_ambient_capability_set();
    thread::set_capabilities(None, sets)?;
    thread::set_no_new_privs(true)?;
    Ok(())
}

/// Takes every capability for good, those of a namespace included, and what would give new ones.
#[cfg(target_os = "linux")]
pub(super) fn drop_all_capabilities() -> io::Result<()> {
    use rustix::thread::{self, CapabilitySet};
    if !thread::capabilities(None)?.effective.is_empty() {
        for capability in CapabilitySet::all() {
            if matches!(thread::capability_is_in_bounding_set(capability), Ok(true)) {
                thread::remove_capability_from_bounding_set(capability)?;
            }
        }
        let _ = thread::clear_ambient_capability_set();
        let none = CapabilitySet::empty();
        thread::set_capabilities(
            None,
            thread::CapabilitySets {
                effective: none,
                permitted: none,
                inheritable: none,
            },
        )?;
    }
    thread::set_no_new_privs(true)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn drop_capabilities() -> io::Result<()> {
    Ok(())
}

/// Closes every descriptor but the standard ones at exec. Last, because whatever opens one comes before.
fn close_on_exec() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: changes flags of descriptors of this process, which only execs from here on.
        let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if done == 0 {
            return;
        }
    }
    let limit = rustix::process::getrlimit(Resource::Nofile)
        .current
        .unwrap_or(4096)
        .min(4096);
    for fd in 3..i32::try_from(limit).unwrap_or(4096) {
        // SAFETY: changes a flag; a number that is no descriptor is an error that does no harm.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
