//! Other processes as `/proc` shows them.

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// When it began, in ticks since the machine did: with `pid`, its identity.
    pub began: u64,
    /// Its arguments, separated by blanks.
    pub command: String,
}

/// Every process that is not a zombie.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| find(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// The process `pid`, if it runs.
pub fn find(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, parentheses too.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let began = fields.nth(17)?.parse().ok()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Process {
        pid,
        parent,
        began,
        command,
    })
}

/// Whether `pid` runs.
pub fn alive(pid: i32) -> bool {
    find(pid).is_some()
}

/// Every process below `pid`.
pub fn descendants(pid: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let (mut found, mut look) = (Vec::new(), vec![pid]);
    while let Some(parent) = look.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        look.extend(below.iter().map(|process| process.pid));
        found.extend(below);
    }
    found
}

/// Resident memory of `pid` in KiB.
///
/// # Errors
/// When it does not run.
pub fn resident_kib(pid: i32) -> anyhow::Result<u64> {
    memory(pid, "VmRSS:")
}

/// The most memory that `pid` ever had resident, in KiB.
///
/// # Errors
/// When it does not run.
pub fn peak_kib(pid: i32) -> anyhow::Result<u64> {
    memory(pid, "VmHWM:")
}

fn memory(pid: i32, key: &'static str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).context(key)?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Sends `signal` to `pid` and waits for its end. A process that is gone already is no error.
///
/// # Errors
/// When it does not end.
pub async fn end(pid: i32, signal: Signal) -> anyhow::Result<()> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(()) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error).context("pidfd_open"),
    };
    match pidfd_send_signal(&handle, signal) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(error).context("pidfd_send_signal"),
    }
    ended(handle).await
}

/// Sends `signal` to `pid` without waiting for anything. A process that is gone already is no error.
///
/// # Errors
/// When it may not be sent.
pub fn signal(pid: i32, signal: Signal) -> anyhow::Result<()> {
    match Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, signal)) {
        None | Some(Ok(()) | Err(Errno::SRCH)) => Ok(()),
        Some(Err(error)) => Err(error).context("kill"),
    }
}

/// Waits for the end of `pid`, which is not told to end.
///
/// # Errors
/// When it does not end.
pub async fn gone(pid: i32) -> anyhow::Result<()> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(()) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => ended(handle).await,
        Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).context("pidfd_open"),
    }
}

async fn ended(handle: OwnedFd) -> anyhow::Result<()> {
    let ended = tokio::task::spawn_blocking(move || {
        loop {
            match poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) {
                Err(Errno::INTR) => {}
                other => return other,
            }
        }
    });
    crate::soon("the process ends", ended).await??.context("poll")?;
    Ok(())
}
