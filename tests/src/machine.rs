//! Other machines than the one the tests run on: the same test program again, as an ordinary user, or where nobody may make
//! user namespaces. What the inner run skips is skipped in the outer one's name.

use crate::bins::{self, bins};
use crate::skip;
use anyhow::{Context, ensure};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Who the tests run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs them now.
    Same,
    /// Somebody without any privilege. Only root can become it.
    Ordinary,
}

/// Whether user namespaces can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// As the machine has it.
    Same,
    /// They cannot, as on hardened kernels and in most containers.
    Refused,
}

/// An id that belongs to nobody on any machine.
const ORDINARY: u32 = 54_321;

/// Runs the tests of this program whose name contains one of `filters` as `user`, with `namespaces`.
///
/// # Errors
/// When one of them fails, or none is run; the message has what they said.
pub fn run_tests(filters: &[&str], user: User, namespaces: Namespaces) -> anyhow::Result<()> {
    let place = tempfile::Builder::new().prefix("at-").tempdir_in("/tmp")?;
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755))?;
    // An ordinary user may have no way to the build's directory.
    let test = copy(&std::env::current_exe()?, place.path())?;
    for program in [bins()?.agentd(), bins()?.agentctl(), bins()?.agent_tui()] {
        copy(&program, place.path())?;
    }
    // Where only root may make directories it makes one for whom it becomes.
    let apart = tempfile::Builder::new().prefix("ah-").tempdir_in("/srv").ok();
    let mut command = Command::new(test);
    command.args(filters).args(["--test-threads", "2"]);
    command
        .current_dir("/")
        .env(bins::BUILT, place.path())
        .env(skip::INNER, "1");
    command.env("HOME", place.path());
    // Where rustup has its toolchains unless it is told.
    if let (None, Some(home)) = (std::env::var_os("RUSTUP_HOME"), std::env::var_os("HOME")) {
        command.env("RUSTUP_HOME", Path::new(&home).join(".rustup"));
    }
    if let Some(apart) = &apart {
        command.env(crate::daemon::APART, apart.path());
        if user == User::Ordinary {
            std::os::unix::fs::chown(apart.path(), Some(ORDINARY), Some(ORDINARY))?;
        }
    }
    if user == User::Ordinary {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    if namespaces == Namespaces::Refused {
        let filter = without_namespaces()?;
        // SAFETY: between fork and exec; installing a filter makes two system calls and allocates nothing.
        unsafe {
            command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other));
        }
    }
    let ran = command.output().context("the inner run")?;
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    for skipped in said.lines().filter_map(|line| line.strip_prefix("SKIP ")) {
        skip::note(&format!("{user:?} user, {namespaces:?} namespaces: {skipped}"));
    }
    ensure!(ran.status.success(), "{user:?} user, {namespaces:?} namespaces: {said}");
    ensure!(
        !said.contains("running 0 tests"),
        "no test has such a name: {filters:?}"
    );
    Ok(())
}

fn copy(program: &Path, to: &Path) -> anyhow::Result<std::path::PathBuf> {
    let copied = to.join(program.file_name().context("a program's name")?);
    std::fs::copy(program, &copied).with_context(|| program.display().to_string())?;
    std::fs::set_permissions(&copied, std::fs::Permissions::from_mode(0o755))?;
    Ok(copied)
}

/// Refuses what makes a user namespace, to this process and all it starts, the way kernels refuse it that allow none.
fn without_namespaces() -> anyhow::Result<BpfProgram> {
    let flag = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
    let rule = || Ok::<_, anyhow::Error>(vec![SeccompRule::new(vec![condition.clone()])?]);
    let rules = [(libc::SYS_unshare, rule()?), (libc::SYS_clone, rule()?)].into();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()?)
}
