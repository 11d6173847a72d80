//! Finding and killing everything below a process. Used by a guard for its command, and by the daemon for what a killed
//! guard left behind. Both are subreapers, so whatever a command starts stays below them, however often it forks away.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::sandbox::Hear;

/// Between two rounds of killing; a killed process needs a moment to go.
const ROUND_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause, for processes that hang in the kernel.
const ROUND_PAUSE_LIMIT: Duration = Duration::from_millis(50);

/// Looks at the direct children before each look at all processes.
const NEAREST_ROUNDS: usize = 50;

/// Whether children are left after reaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// No child, so no descendant either.
    None,
    /// At least one child lives.
    Some,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// With an exit code.
    Exited(i32),
    /// By a signal of this number.
    Signalled(i32),
}

impl Status {
    /// None if the process has not ended.
    pub(super) fn of(status: WaitStatus) -> Option<Self> {
        let exited = status.exit_status().map(Self::Exited);
        exited.or_else(|| status.terminating_signal().map(Self::Signalled))
    }
}

/// The children of a guard, of which one is the command or the first process of its namespace.
#[derive(Debug)]
pub(super) struct Brood {
    /// Ends when the command does.
    pub(super) main: Pid,
    /// The process group of the command.
    group: Pid,
    /// Tells how the command ended where it is not `main` itself.
    hear: Option<Hear>,
    /// How the command ended.
    pub(super) status: Option<Status>,
}

impl Brood {
    /// A command that leads a process group of its own.
    pub(super) fn new(main: Pid) -> Self {
        Self {
            main,
            group: main,
            hear: None,
            status: None,
        }
    }

    /// A command in a namespace whose first process is `main`; both are in `group`.
    pub(super) fn inside(main: Pid, group: Pid, hear: Hear) -> Self {
        Self {
            main,
            group,
            hear: Some(hear),
            status: None,
        }
    }

    /// How the command ended, now that `main` ended with `status`.
    fn told(&mut self, status: WaitStatus) -> Option<Status> {
        let told = self.hear.as_mut().and_then(Hear::status);
        told.or_else(|| Status::of(status))
    }

    /// Takes the status of every child that ended.
    pub(super) fn reap(&mut self) -> Left {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.status = self.told(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Left::Some,
                Err(_) => return Left::None,
            }
        }
    }

    /// Asks the command's process group to end; a stopped one is woken to hear it.
    pub(super) fn terminate(&self) {
        // The group may be gone already, which is what was wanted.
        let _ = rustix::process::kill_process_group(self.group, Signal::TERM);
        let _ = rustix::process::kill_process_group(self.group, Signal::CONT);
    }

    /// Kills the direct children for a few rounds, which takes microseconds: a process that keeps forking away from its
    /// parent is a direct child each time, and gone before all of `/proc` is read.
    fn kill_nearest(&mut self) {
        for _ in 0..NEAREST_ROUNDS {
            for child in own_children() {
                let _ = rustix::process::kill_process(child, Signal::KILL);
            }
            if self.reap() == Left::None {
                return;
            }
        }
    }

    /// Kills until nothing is left below this process, or until `limit`.
    pub(super) fn kill_all(&mut self, limit: Option<Duration>) -> Left {
        let begin = Instant::now();
        let mut pause = ROUND_PAUSE;
        while self.reap() == Left::Some {
            if self.status.is_none() {
                let _ = rustix::process::kill_process_group(self.group, Signal::KILL);
            }
            self.kill_nearest();
            kill_below(rustix::process::getpid());
            if limit.is_some_and(|limit| begin.elapsed() >= limit) {
                return self.reap();
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(ROUND_PAUSE_LIMIT);
        }
        Left::None
    }
}

/// The children of the calling thread, in a process that has no other. Empty where the kernel does not tell.
fn own_children() -> Vec<Pid> {
    let pid = rustix::process::getpid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/self/task/{pid}/children")).unwrap_or_default();
    children
        .split_ascii_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

/// One process as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
}

/// Kills every descendant of `top` once, with the process group it is in: a group dies at once, so that nothing in it can
/// fork faster than it is found.
pub(super) fn kill_below(top: Pid) {
    let top = top.as_raw_nonzero().get();
    let processes = snapshot();
    let own_group = processes
        .iter()
        .find(|process| process.pid == top)
        .map(|process| process.group);
    for process in below(&processes, &BTreeSet::from([top])) {
        kill_one(process, own_group);
    }
}

/// Kills a process and its group, unless the group is the killer's own.
pub(super) fn kill_one(process: Process, own_group: Option<i32>) {
    if Some(process.group) != own_group && process.group > 1 {
        let _ = Pid::from_raw(process.group).map(|group| rustix::process::kill_process_group(group, Signal::KILL));
    }
    let _ = Pid::from_raw(process.pid).map(|pid| rustix::process::kill_process(pid, Signal::KILL));
}

/// The processes below any of `tops`, at any depth.
pub(super) fn below(processes: &[Process], tops: &BTreeSet<i32>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut ahead: Vec<i32> = tops.iter().copied().collect();
    while let Some(pid) = ahead.pop() {
        // Taking the entry away keeps a torn snapshot with a circle in it from being walked for ever.
        for process in children.remove(&pid).unwrap_or_default() {
            ahead.push(process.pid);
            found.push(process);
        }
    }
    found
}

/// All processes, each as it was when it was looked at. Empty where there is no `/proc`.
pub(super) fn snapshot() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| read_stat(pid).ok().flatten()).collect()
}

fn read_stat(pid: i32) -> io::Result<Option<Process>> {
    Ok(parse_stat(
        pid,
        &String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat"))?),
    ))
}

/// The name in the second field is in parentheses and may hold anything, further parentheses included.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
    let mut next = || fields.next()?.parse().ok();
    Some(Process {
        pid,
        parent: next()?,
        group: next()?,
        session: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_forge_its_parent() {
        let parsed = parse_stat(7, "7 (evil) R 1 1 1 (x) S 5 6 8 0 -1 4194304");
        assert_eq!(
            parsed,
            Some(Process {
                pid: 7,
                parent: 5,
                group: 6,
                session: 8
            })
        );
        assert_eq!(parse_stat(7, "7 (x"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_circles_end() {
        let process = |pid, parent| Process {
            pid,
            parent,
            group: pid,
            session: pid,
        };
        let all = [
            process(2, 1),
            process(3, 2),
            process(4, 3),
            process(5, 1),
            process(8, 9),
            process(9, 8),
        ];
        let pids = |tops: &[i32]| -> BTreeSet<i32> {
            below(&all, &tops.iter().copied().collect())
                .into_iter()
                .map(|process| process.pid)
                .collect()
        };
        assert_eq!(pids(&[2]), BTreeSet::from([3, 4]));
        assert_eq!(pids(&[8]), BTreeSet::from([8, 9]));
    }

    #[test]
    fn the_snapshot_holds_this_process() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        if std::fs::metadata("/proc/self/stat").is_err() {
            crate::skip::note("no /proc");
            return;
        }
        assert!(snapshot().iter().any(|process| process.pid == own));
    }
}
