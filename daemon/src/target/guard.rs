//! `agentd exec-guard`: the process between the daemon and a command, which makes sure that the command and all it starts
//! end when it should, above all when the daemon dies.
//!
//! Its standard descriptors are its whole interface. On 0 it reads the control pipe, whose write end only the daemon holds:
//! what the command is to read comes first, if there is something; then
//! `t` asks the command to end, `k` kills it and everything below, the end of the pipe means that the daemon is gone and
//! kills too. 1 is handed to the command as its output and error. On 2 it writes one line when all is over: `exit CODE`,
//! `signal NUMBER` or `failed REASON`, the first two followed by what it met at the walls of its sandbox, if there is something.
//! For its whole life it holds a share of the guards' lock. It does nothing before its work, and has one thread until the command
//! runs: a command costs little more with it than without.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use super::FileId;
use super::confine::{GUARD_IGNORES, confine};
use super::descendants::{Brood, Left, Status};
use super::sandbox::{self, Counters, Ghosts, Met, Plan, Profile, Supervisor};
use super::{lock, told};

/// The word after `agentd` that makes it a guard.
pub const EXEC_GUARD: &str = "exec-guard";

/// Asks the command to end.
pub(super) const TERMINATE: u8 = b't';

/// Kills everything.
pub(super) const KILL: u8 = b'k';

/// How long the end of the command waits for what is left below it to die, before it is reported all the same. Only a
/// process that hangs in the kernel takes longer than milliseconds.
const SWEEP_LIMIT: Duration = Duration::from_secs(2);

/// How often orphans that end while the command runs are reaped.
const REAP_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// What is said before the output of a command whose tree could not be looked through.
const UNSEEN: &str = "[the project is too large to look for all files with names of secrets; some may not be hidden]\n";

/// What is said before the output of a command in whose tree some repositories may be changed.
const UNKEPT: &str = "[the project is too large to look for all repositories below its root, or has too many; hooks and configuration of some may not be protected]\n";

/// Characters of a path in a report.
const SHOWN_LIMIT: usize = 512;

/// Where there are no process descriptors: how often the command's end is looked for.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// What a guard is to run; written as arguments by the daemon, read back by the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) lock: PathBuf,
    pub(super) cwd: PathBuf,
    /// The directory that was judged; another one of the same name is refused.
    pub(super) cwd_id: FileId,
    pub(super) umask: u32,
    /// Soft limit of open descriptors; none if unlimited.
    pub(super) nofile_soft: Option<u64>,
    /// Bytes on the control pipe, before anything else, that the command reads as its input.
    pub(super) input_bytes: u64,
    /// What the command may reach; everything its user may if none.
    pub(super) sandbox: Option<Profile>,
    /// Program and arguments.
    pub(super) line: Vec<OsString>,
}

impl Order {
    /// The arguments after `exec-guard`.
    ///
    /// # Errors
    /// A path of the sandbox is no UTF-8.
    pub(super) fn to_arguments(&self) -> io::Result<Vec<OsString>> {
        let nofile = self
            .nofile_soft
            .map_or_else(|| "unlimited".to_string(), |limit| limit.to_string());
        let FileId { device, inode } = self.cwd_id;
        let mut arguments: Vec<OsString> = vec![
            self.lock.clone().into(),
            self.cwd.clone().into(),
            format!("{device}:{inode}").into(),
            format!("{:o}", self.umask).into(),
            nofile.into(),
            self.input_bytes.to_string().into(),
            serde_json::to_string(&self.sandbox)?.into(),
        ];
        arguments.extend(self.line.iter().cloned());
        Ok(arguments)
    }

    fn from_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let lock = PathBuf::from(arguments.next()?);
        let cwd = PathBuf::from(arguments.next()?);
        let (device, inode) = {
            let id = arguments.next()?.into_string().ok()?;
            let (device, inode) = id.split_once(':')?;
            (device.parse().ok()?, inode.parse().ok()?)
        };
        let umask = u32::from_str_radix(arguments.next()?.to_str()?, 8).ok()?;
        let nofile_soft = match arguments.next()?.to_str()? {
            "unlimited" => None,
            number => Some(number.parse().ok()?),
        };
        let input_bytes = arguments.next()?.to_str()?.parse().ok()?;
        let sandbox = serde_json::from_str(arguments.next()?.to_str()?).ok()?;
        let line: Vec<OsString> = arguments.collect();
        (!line.is_empty()).then_some(Self {
            lock,
            cwd,
            cwd_id: FileId { device, inode },
            umask,
            nofile_soft,
            input_bytes,
            sandbox,
            line,
        })
    }
}

/// The guard if this process was started as one; `main` calls it before anything else.
///
/// `arguments` are those of the process, the program's name first.
pub fn exec_guard(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.nth(1).as_deref() != Some(OsStr::new(EXEC_GUARD)) {
        return None;
    }
    let mut arguments = arguments.peekable();
    if arguments.next_if(|word| word == sandbox::PROBE).is_some() {
        return Some(probe(arguments));
    }
    let Some(order) = Order::from_arguments(arguments) else {
        report("failed exec-guard is started by agentd, not by hand");
        return Some(ExitCode::from(2));
    };
    match guard(&order) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            report(&format!("failed {error}"));
            Some(ExitCode::FAILURE)
        }
    }
}

/// Finds out for the daemon what can be enforced here.
fn probe(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match sandbox::answer_probe(arguments).map(|answer| io::stdout().write_all(answer.as_bytes())) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn guard(order: &Order) -> io::Result<()> {
    prepare();
    let _share = lock::share(&order.lock)?;
    let mut control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    // If the daemon died before the share was taken, the next one may be running already and must not be surprised.
    if daemon_is_gone(&control)? {
        return Ok(());
    }
    enter(order)?;
    let mut ghosts = Ghosts::default();
    let plan = order.sandbox.as_ref().map(|profile| Plan::new(profile, &mut ghosts));
    let said = plan
        .iter()
        .flat_map(|plan| [(plan.unseen, UNSEEN), (plan.unkept, UNKEPT)]);
    for (_, text) in said.filter(|(is_so, _)| *is_so) {
        // Nobody reading is no reason not to run.
        let _ = io::stdout().write_all(text.as_bytes());
    }
    let input = input(order, &mut control)?;
    let started = start(order, plan, input);
    let done = started.and_then(|started| attend(started, &mut control));
    ghosts.leave();
    done
}

/// A command that runs, and who looks at what it makes and seeks.
struct Started {
    brood: Brood,
    supervisor: Option<Supervisor>,
    counters: Option<Counters>,
}

/// Stays with the command until it and all it started are gone.
fn attend(started: Started, control: &mut File) -> io::Result<()> {
    let Started {
        mut brood,
        supervisor,
        counters,
    } = started;
    match watch(&mut brood, control) {
        Ok(Over::Ended) => {
            let left = brood.kill_all(Some(SWEEP_LIMIT));
            let refused = supervisor.map(|supervisor| supervisor.refused()).unwrap_or_default();
            let met = Met {
                sought: counters.map(|counters| counters.sought()).unwrap_or_default(),
                repositories: refused.iter().map(|path| shown(path)).collect(),
            };
            report(&line_of(brood.status, &met));
            if left == Left::Some {
                brood.kill_all(None);
            }
            Ok(())
        }
        // Without a daemon, or without a way to hear it, nothing may go on.
        Ok(Over::Abandoned) => {
            brood.kill_all(None);
            Ok(())
        }
        Err(error) => {
            brood.kill_all(None);
            Err(error)
        }
    }
}

/// Becomes a session of its own that adopts orphans, holds nothing inherited, and lives until its work is done.
fn prepare() {
    // Each of these can only fail where it is not needed: as leader of a session already, or on another system.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        // A command may have stopped its guard; the daemon's end wakes it to do its work.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT));
        // SAFETY: closes descriptors nobody in this process has opened yet.
        unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    }
    for signal in GUARD_IGNORES {
        // SAFETY: sets a disposition to a constant; no handler is involved.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Goes to the working directory, if it is still the one that was judged.
fn enter(order: &Order) -> io::Result<()> {
    go_to(&order.cwd, order.cwd_id)
}

fn go_to(cwd: &Path, id: FileId) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", cwd.display()));
    std::env::set_current_dir(cwd).map_err(named)?;
    if FileId::from(&rustix::fs::stat(".")?) == id {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} was replaced by another directory",
        cwd.display()
    )))
}

/// What the command reads: a file without a name, which never makes anybody wait, or nothing.
fn input(order: &Order, control: &mut File) -> io::Result<Stdio> {
    if order.input_bytes == 0 {
        return Ok(Stdio::null());
    }
    let place = order.lock.with_file_name(format!("input-{}", std::process::id()));
    let mut options = File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&place)?;
    std::fs::remove_file(&place)?;
    if io::copy(&mut control.take(order.input_bytes), &mut file)? < order.input_bytes {
        return Err(io::Error::other("the daemon ended"));
    }
    file.rewind()?;
    Ok(file.into())
}

fn start(order: &Order, plan: Option<Plan>, input: Stdio) -> io::Result<Started> {
    let Some((program, arguments)) = order.line.split_first() else {
        return Err(io::Error::other("no command"));
    };
    let (umask, nofile_soft) = (order.umask, order.nofile_soft);
    let (cwd, cwd_id) = (order.cwd.clone(), order.cwd_id);
    let sandbox = order.sandbox.clone().zip(plan);
    let (ear, voice) = sandbox::channels(order.sandbox.as_ref())?;
    let known = sandbox.clone();
    let mut command = Command::new(program);
    command.args(arguments).stdin(input).process_group(0);
    command.stdout(output()?).stderr(output()?);
    let child = told::spawn(command, move || {
        confine(umask, nofile_soft)?;
        match &sandbox {
            Some((profile, plan)) => enforce(plan, profile, &voice, || go_to(&cwd, cwd_id)),
            None => Ok(()),
        }
    });
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", program.to_string_lossy()));
    let mut brood = match (child, ear.hear) {
        (Ok(child), None) => Brood::new(Pid::from_child(&child)),
        (Ok(child), Some(mut hear)) => Brood::inside(hear.first()?, Pid::from_child(&child), hear),
        (Err(error), None) => return Err(named(error)),
        (Err(error), Some(mut hear)) => {
            // What was started on the way must not be left to somebody else to bury.
            if let Ok(first) = hear.first() {
                Brood::new(first).kill_all(Some(SWEEP_LIMIT));
            }
            return Err(named(error));
        }
    };
    let supervisor = ear
        .take
        .zip(known)
        .map(|(take, (profile, plan))| take.supervisor(plan, &profile));
    let supervisor = supervisor.transpose().inspect_err(|_| {
        brood.kill_all(Some(SWEEP_LIMIT));
    })?;
    Ok(Started {
        brood,
        supervisor,
        counters: ear.counters,
    })
}

#[cfg(target_os = "linux")]
use sandbox::enforce;

#[cfg(not(target_os = "linux"))]
fn enforce(_: &Plan, _: &Profile, _: &sandbox::Voice, _: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    Err(io::Error::other("sandboxes need Linux"))
}

fn output() -> io::Result<OwnedFd> {
    io::stdout().as_fd().try_clone_to_owned()
}

fn daemon_is_gone(control: &File) -> io::Result<bool> {
    let mut fds = [PollFd::new(control, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now))?;
    let seen = fds[0].revents();
    Ok(seen.contains(PollFlags::HUP) && !seen.contains(PollFlags::IN))
}

/// Why watching is over.
enum Over {
    /// The command ended.
    Ended,
    /// The daemon is gone.
    Abandoned,
}

fn watch(brood: &mut Brood, control: &mut File) -> io::Result<Over> {
    let main = rustix::process::pidfd_open(brood.main, PidfdFlags::empty()).ok();
    let timeout = if main.is_some() { REAP_EVERY } else { LOOK_EVERY };
    loop {
        brood.reap();
        if brood.status.is_some() {
            return Ok(Over::Ended);
        }
        let mut fds = vec![PollFd::new(&*control, PollFlags::IN)];
        fds.extend(main.as_ref().map(|main| PollFd::new(main, PollFlags::IN)));
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if fds.first().is_some_and(|fd| fd.revents().is_empty()) {
            continue;
        }
        drop(fds);
        let mut order = [0_u8];
        match control.read(&mut order) {
            Ok(1) if order == [TERMINATE] => brood.terminate(),
            Ok(1) => {
                brood.kill_all(Some(SWEEP_LIMIT));
            }
            Ok(_) => return Ok(Over::Abandoned),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(Over::Abandoned),
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string().chars().take(SHOWN_LIMIT).collect()
}

fn line_of(status: Option<Status>, met: &Met) -> String {
    match status {
        Some(Status::Exited(code)) => format!("exit {code}{}", met.words()),
        Some(Status::Signalled(signal)) => format!("signal {signal}{}", met.words()),
        None => "failed the command cannot be killed".into(),
    }
}

fn report(line: &str) {
    // With nobody left to read it there is nobody to tell.
    let _ = io::stderr().write_all(format!("{}\n", line.replace('\n', " ")).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_being_written_as_arguments() -> io::Result<()> {
        for nofile_soft in [None, Some(1024)] {
            let order = Order {
                lock: "/s/guards.lock".into(),
                cwd: "/work/with space".into(),
                cwd_id: FileId {
                    device: 7,
                    inode: u64::MAX,
                },
                umask: 0o027,
                nofile_soft,
                input_bytes: 3,
                sandbox: None,
                line: vec!["bash".into(), "-c".into(), "echo \"$1\"\n-- x".into()],
            };
            assert_eq!(Order::from_arguments(order.to_arguments()?.into_iter()), Some(order));
        }
        Ok(())
    }

    #[test]
    fn anything_but_the_guards_word_is_left_to_main() {
        let call = |arguments: &[&str]| exec_guard(arguments.iter().map(OsString::from)).is_none();
        assert!(call(&["agentd"]) && call(&["agentd", "--version"]) && call(&["agentd", "x", "exec-guard"]));
    }
}
