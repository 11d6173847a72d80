//! What a guard leaves behind when it is killed itself: the daemon adopts it, being a subreaper, and ends it here. Anything
//! a command starts thus stays below the daemon until it is dead, and can never pass for a person.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions};

use super::descendants::{Process, below, kill_one, snapshot};

/// Between two rounds of killing.
const ROUND_PAUSE: Duration = Duration::from_millis(2);

/// How long a sweep tries. What survives hangs in the kernel, and the next sweep meets it again.
const SWEEP_LIMIT: Duration = Duration::from_secs(1);

/// The guards this process started and has not yet waited for. Children belong to the process, so the list does too.
static GUARDS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A guard that a sweep must spare; dropped when the guard is over.
#[derive(Debug)]
pub(super) struct Registration(i32);

impl Drop for Registration {
    fn drop(&mut self) {
        guards().remove(&self.0);
    }
}

/// Starts a guard by `start`, which answers its pid, with no sweep in between that would take it for an orphan.
pub(super) fn register<T>(start: impl FnOnce() -> io::Result<(T, i32)>) -> io::Result<(T, Registration)> {
    let mut guards = guards();
    let (started, pid) = start()?;
    guards.insert(pid);
    Ok((started, Registration(pid)))
}

/// Kills and reaps, blocking, every adopted process and what is below it.
pub(super) fn sweep() {
    let begin = Instant::now();
    while begin.elapsed() < SWEEP_LIMIT {
        let guards = guards();
        let processes = snapshot();
        let orphans = adopted(&processes, &guards);
        if orphans.is_empty() {
            return;
        }
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let own_group = processes
            .iter()
            .find(|process| process.pid == own)
            .map(|process| process.group);
        let tops = orphans.iter().map(|orphan| orphan.pid).collect();
        for process in orphans.iter().copied().chain(below(&processes, &tops)) {
            kill_one(process, own_group);
        }
        for orphan in &orphans {
            // Not dead yet: the next round takes it.
            let _ = Pid::from_raw(orphan.pid).map(|pid| rustix::process::waitpid(Some(pid), WaitOptions::NOHANG));
        }
        drop(guards);
        std::thread::sleep(ROUND_PAUSE);
    }
}

/// Children of this process that it did not start: no guard of its own, and of another session, since only guards and
/// what they start leave the daemon's.
fn adopted(processes: &[Process], guards: &BTreeSet<i32>) -> Vec<Process> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Some(session) = processes
        .iter()
        .find(|process| process.pid == own)
        .map(|process| process.session)
    else {
        return Vec::new();
    };
    let orphan =
        |process: &&Process| process.parent == own && process.session != session && !guards.contains(&process.pid);
    processes.iter().filter(orphan).copied().collect()
}

fn guards() -> MutexGuard<'static, BTreeSet<i32>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}
