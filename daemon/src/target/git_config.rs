//! The keys of a repository's own configuration with which git runs programs. Listing the configuration runs none of
//! them; the settings that could still surprise are switched off, and what hangs (an include of a FIFO) is ended.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::environment::GIT_WITHOUT_PROGRAMS;

/// How long git may take to list its configuration; it takes milliseconds.
const LIST_LIMIT: Duration = Duration::from_secs(2);

/// Bytes of a listing; a real one has a few kilobytes.
const LIST_BYTES: usize = 1024 * 1024;

/// What stands for a configuration that could not be read whole.
const UNREADABLE: &str = "which cannot be read whole";

/// The keys found for the repository at `place`; empty if there is none or it names no programs.
pub(super) fn programs(git: &Path, place: &Path, home: Option<&Path>) -> Vec<String> {
    match listing(git, place, home) {
        Some(listing) => keys(&listing),
        None => vec![UNREADABLE.to_owned()],
    }
}

/// `scope NUL key NUL` pairs.
fn listing(git: &Path, place: &Path, home: Option<&Path>) -> Option<Vec<u8>> {
    let mut command = Command::new(git);
    command.args([
        "--no-pager",
        "config",
        "--show-scope",
        "--includes",
        "--name-only",
        "-z",
        "--list",
    ]);
    command
        .current_dir(place)
        .env_clear()
        .envs(GIT_WITHOUT_PROGRAMS.iter().copied());
    command.env("LC_ALL", "C").envs(home.map(|home| ("HOME", home)));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let listing = child.stdout.take().and_then(read);
    if listing.is_none() {
        // It may be gone already.
        let _ = child.kill();
    }
    // Outside of a repository git lists what there is and ends well; where it ends badly there is nothing it would run.
    child.wait().ok()?;
    listing
}

/// Everything until the end, if that comes in time.
fn read(mut pipe: std::process::ChildStdout) -> Option<Vec<u8>> {
    let begin = Instant::now();
    let mut listing = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        let left = LIST_LIMIT.checked_sub(begin.elapsed())?;
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).ok()?,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
        }
        match pipe.read(&mut chunk) {
            Ok(0) => return Some(listing),
            Ok(length) => listing.extend_from_slice(chunk.get(..length)?),
            Err(_) => return None,
        }
        if listing.len() > LIST_BYTES {
            return None;
        }
    }
}

fn keys(listing: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(listing);
    let mut fields = text.split('\0');
    let mut keys = Vec::new();
    while let (Some(scope), Some(key)) = (fields.next(), fields.next()) {
        if matches!(scope, "local" | "worktree") && runs_programs(key) {
            keys.push(key.to_owned());
        }
    }
    keys
}

/// Whether git runs the value of this key, or takes keys from where it points.
fn runs_programs(key: &str) -> bool {
    let key = key.to_lowercase();
    let (section, name) = (
        key.split('.').next().unwrap_or_default(),
        key.rsplit('.').next().unwrap_or_default(),
    );
    match section {
        "core" => matches!(
            name,
            "fsmonitor" | "pager" | "sshcommand" | "hookspath" | "attributesfile" | "worktree" | "alternaterefscommand"
        ),
        "diff" => matches!(name, "external" | "command" | "textconv"),
        "filter" => matches!(name, "clean" | "smudge" | "process"),
        "remote" => matches!(name, "uploadpack" | "receivepack"),
        "pager" | "gpg" | "alias" | "include" | "includeif" | "credential" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_repositorys_own_keys_that_run_something_count() {
        let listing = b"global\0alias.st\0local\0core.bare\0local\0filter.lfs.clean\0worktree\0Core.FSMonitor\0local\0remote.o.url\0";
        assert_eq!(keys(listing), ["filter.lfs.clean", "Core.FSMonitor"]);
    }

    #[test]
    fn a_repository_with_a_filter_is_found_and_an_include_that_hangs_is_given_up() -> anyhow::Result<()> {
        let Some(git) = ["/usr/bin/git", "/usr/local/bin/git"]
            .iter()
            .map(Path::new)
            .find(|git| git.is_file())
        else {
            crate::skip::note("no git");
            return Ok(());
        };
        let dir = tempfile::tempdir()?;
        let run = |arguments: &[&str]| Command::new(git).args(arguments).current_dir(dir.path()).status();
        run(&["init", "-q"])?;
        assert_eq!(programs(git, dir.path(), None), Vec::<String>::new());
        run(&["config", "filter.x.clean", "touch marker"])?;
        assert_eq!(programs(git, dir.path(), None), ["filter.x.clean"]);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )?;
        run(&["config", "include.path", "../fifo"])?;
        assert_eq!(programs(git, dir.path(), None), [UNREADABLE]);
        Ok(())
    }
}
