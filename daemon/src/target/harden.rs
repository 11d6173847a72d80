//! What the daemon does to itself first: nobody may read its memory, it leaves no core file, makes private files, adopts
//! orphans of its commands, and may open many descriptors. What it was started with is kept for its children.

use std::io;
use std::sync::OnceLock;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit};

/// What the daemon was started with and its commands get back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inherited {
    /// File mode creation mask.
    pub(super) umask: u32,
    /// Soft limit of open descriptors; none if unlimited.
    pub(super) nofile_soft: Option<u64>,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Hardens this process. Call it once, first in `main`, before any thread exists.
///
/// # Errors
/// The system refused a step that secrecy depends on. Limits that cannot be raised are no error.
pub fn harden_daemon() -> io::Result<()> {
    let inherited = Inherited {
        umask: rustix::process::umask(Mode::RWXG | Mode::RWXO).bits(),
        nofile_soft: nofile().current,
    };
    INHERITED.get_or_init(|| inherited);
    rustix::process::setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    raise_nofile();
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    Ok(())
}

/// What commands get; in a process that was not hardened, what it has now.
pub(super) fn inherited() -> Inherited {
    *INHERITED.get_or_init(|| Inherited {
        umask: present_umask(),
        nofile_soft: nofile().current,
    })
}

fn nofile() -> Rlimit {
    rustix::process::getrlimit(Resource::Nofile)
}

fn raise_nofile() {
    let limit = nofile();
    // A hard limit of "unlimited" cannot be taken over on every system; then the old one stays, which is no harm.
    let _ = rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// The mask without setting it, which would race with other threads.
fn present_umask() -> u32 {
    const USUAL: u32 = 0o022;
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return USUAL;
    };
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(USUAL)
}
