//! The sandbox becomes true: called in the guard's child, between fork and exec, in an order in which nothing takes away
//! what a later step needs.

use std::io;

use super::{Form, Plan, Profile, mounts, ruleset, syscalls};
use crate::target::confine;

/// Processes and threads below one command. The limit counts only what runs in its own user namespace.
const PROCESSES_LIMIT: u64 = 8192;

/// Makes the sandbox. `settle` returns to the working directory, whose mount may have changed.
///
/// # Errors
/// With the step that failed; the command must not run then.
pub(in crate::target) fn enforce(
    plan: &Plan,
    profile: &Profile,
    settle: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    if profile.form == Form::Namespaces {
        mounts::unshare(profile.network).map_err(step("namespaces"))?;
        mounts::arrange(plan, profile).map_err(step("mounts"))?;
        let limit = rustix::process::Rlimit {
            current: Some(PROCESSES_LIMIT),
            maximum: Some(PROCESSES_LIMIT),
        };
        // A lower limit that was inherited is as good.
        let _ = rustix::process::setrlimit(rustix::process::Resource::Nproc, limit);
    }
    settle()?;
    confine::drop_all_capabilities().map_err(step("capabilities"))?;
    ruleset::restrict(plan, profile).map_err(step("Landlock"))?;
    syscalls::filter(profile).map_err(step("seccomp"))
}

fn step(name: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("the sandbox cannot be made ({name}): {error}"))
}
