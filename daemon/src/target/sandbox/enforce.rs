//! The sandbox becomes true: called in the guard's child, between fork and exec, in an order in which nothing takes away
//! what a later step needs.

use std::io;

use rustix::process::{Resource, Rlimit};

use super::counters::Opener;
use super::supervisor::Give;
use super::{Form, Network, Plan, Profile, Voice, mounts, pids, ruleset, syscalls};
use crate::target::confine;

/// Processes and threads below one command. The limit counts only what runs in its own user namespace.
const PROCESSES_LIMIT: u64 = 8192;

/// Bytes of one file. Beyond what any build makes; what writes on and on ends before the disk does.
const FILE_LIMIT_BYTES: u64 = 64 * 1024 * 1024 * 1024;

/// Makes the sandbox. `settle` returns to the working directory, whose mount may have changed. Where processes are the
/// command's own it is another process that comes back.
///
/// # Errors
/// With the step that failed; the command must not run then.
pub(in crate::target) fn enforce(
    plan: &Plan,
    profile: &Profile,
    voice: &Voice,
    settle: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let tell = voice.tell.as_ref();
    if profile.form == Form::Namespaces {
        mounts::unshare(profile).map_err(step("namespaces"))?;
        if profile.network == Network::Off {
            // Both only help: programs to reach their own servers, a failure to be explained.
            let _ = mounts::raise_loopback();
            let _ = voice.opener.as_ref().map(Opener::open);
        }
        tell.map_or(Ok(()), pids::enter).map_err(step("processes"))?;
        mounts::arrange(plan, profile).map_err(step("mounts"))?;
        limit(Resource::Nproc, PROCESSES_LIMIT);
    }
    limit(Resource::Fsize, FILE_LIMIT_BYTES);
    settle()?;
    confine::drop_all_capabilities().map_err(step("capabilities"))?;
    ruleset::restrict(plan, profile).map_err(step("Landlock"))?;
    syscalls::filter(profile).map_err(step("seccomp"))?;
    let give = voice.give.as_ref();
    give.map_or(Ok(()), Give::listener)
        .map_err(step("seccomp's notifications"))?;
    tell.map_or(Ok(()), pids::stay).map_err(step("processes"))
}

/// Sets both limits. A lower one that was inherited is as good.
fn limit(resource: Resource, limit: u64) {
    let limit = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    let _ = rustix::process::setrlimit(resource, limit);
}

fn step(name: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("the sandbox cannot be made ({name}): {error}"))
}
