//! Running a command through the guard, from the daemon's side.

use std::path::PathBuf;

/// How commands are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardPlan {
    /// The `agentd` executable: `/proc/self/exe` in the daemon, so that an upgrade on disk changes nothing.
    pub exe: PathBuf,
    /// The daemon's state directory; guards hold a lock in it while they live.
    pub state_dir: PathBuf,
}
