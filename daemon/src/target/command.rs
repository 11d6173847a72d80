//! Running a shell command through the guard, from the daemon's side: start it, read what it says, end it.
//!
//! The [`Running`] value owns the control pipe: dropping it, also by the daemon's death, kills the command and all it
//! started. See [`super::guard`] for the other end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::Instant;

use super::guard::{EXEC_GUARD, KILL, Order, TERMINATE};
use super::orphans::{self, Registration};
use super::resolve::Resolved;
use super::sandbox::{self, Confinement, Met, Profile, Refusal};
use super::{Target, TargetError, environment, harden, lock};
use crate::policy::shell::Reach;

/// Bytes read from a command at once: what a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;

/// Bytes that a program may be given to read: what a pipe holds, so that handing them over never waits for long.
pub const INPUT_LIMIT_BYTES: usize = 64 * 1024;

/// Bytes of a guard's report; it is one line, with a few paths at most.
const REPORT_LIMIT_BYTES: usize = 16 * 1024;

/// How long output may still come after the guard reported: only what is in the pipe already, unless a process that cannot
/// be killed holds it.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// How long an ended guard may take to disappear before it is left to the runtime's reaper.
const REAP_LIMIT: Duration = Duration::from_secs(1);

/// Where bash is before PATH is asked, and where a plain shell is when there is none.
const BASH_PLACES: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
const SH: &str = "/bin/sh";

/// How commands are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardPlan {
    /// The `agentd` executable: `/proc/self/exe` in the daemon, so that an upgrade on disk changes nothing.
    pub exe: PathBuf,
    /// The daemon's state directory; guards hold a lock in it while they live.
    pub state_dir: PathBuf,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    control: ChildStdin,
    output: Option<ChildStdout>,
    report_pipe: Option<ChildStderr>,
    report: Vec<u8>,
    met: Met,
    drain_until: Option<Instant>,
    guard: Child,
    _registration: Registration,
}

/// What a running command does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEvent {
    /// It wrote this, to its output or its error, in order.
    Output(Vec<u8>),
    /// It and everything it started are gone.
    Ended(CommandEnd),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// With an exit code.
    Exited(i32),
    /// By a signal of this number.
    Signalled(i32),
    /// It could not be started, or was lost together with its guard; the text says why.
    Failed(String),
}

impl Target {
    /// Starts `command` with bash (sh where there is none) in `cwd`, with the session's environment, its error joined to
    /// its output and nothing to read.
    ///
    /// # Errors
    /// `cwd` is no directory or the guard cannot be started.
    pub fn start_command(&self, plan: &GuardPlan, command: &str, cwd: &Resolved) -> Result<Running, TargetError> {
        self.start_confined(plan, command, cwd, Confinement::Outside)
    }

    /// As [`Target::start_command`], in the sandbox that `confinement` means for this session.
    ///
    /// # Errors
    /// As there; a sandbox that cannot be made is the end of the command, [`CommandEnd::Failed`].
    pub fn start_confined(
        &self,
        plan: &GuardPlan,
        command: &str,
        cwd: &Resolved,
        confinement: Confinement,
    ) -> Result<Running, TargetError> {
        let path = self.environment().get("PATH").map(String::as_str);
        self.start_line(plan, shell_line(path, command), 0, cwd, confinement)
    }

    /// Starts a program without a shell, in `cwd` and outside of any sandbox: the user's own, named in their configuration. It
    /// reads `input`, at most [`INPUT_LIMIT_BYTES`].
    ///
    /// # Errors
    /// As [`Target::start_command`]; an input that is too long.
    pub async fn start_program(
        &self,
        plan: &GuardPlan,
        line: &[String],
        input: &[u8],
        cwd: &Resolved,
    ) -> Result<Running, TargetError> {
        if input.len() > INPUT_LIMIT_BYTES {
            return Err(TargetError::Refused(format!(
                "an input of {} bytes is too long for a program",
                input.len()
            )));
        }
        let line = line.iter().map(Into::into).collect();
        let mut running = self.start_line(plan, line, input.len() as u64, cwd, Confinement::Outside)?;
        // A guard that is gone already says so at its end.
        let _ = running.control.write_all(input).await;
        Ok(running)
    }

    fn start_line(
        &self,
        plan: &GuardPlan,
        line: Vec<OsString>,
        input_bytes: u64,
        cwd: &Resolved,
        confinement: Confinement,
    ) -> Result<Running, TargetError> {
        let inherited = harden::inherited();
        let sandbox = self.sandbox().profile(confinement, self, plan.state_dir.clone());
        let environment = self.confined_environment(confinement, sandbox.as_ref());
        let failed = |source| TargetError::Io {
            path: "starting a command".into(),
            source,
        };
        let order = Order {
            lock: lock::lock_path(&plan.state_dir),
            cwd: cwd.path.clone(),
            cwd_id: self.directory_id(cwd)?,
            umask: inherited.umask,
            nofile_soft: inherited.nofile_soft,
            input_bytes,
            sandbox,
            line,
        };
        let mut guard = tokio::process::Command::new(&plan.exe);
        guard.arg(EXEC_GUARD).args(order.to_arguments().map_err(failed)?);
        guard.env_clear().envs(environment);
        guard
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let start = || {
            let child = guard.spawn()?;
            let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
            Ok((child, pid))
        };
        let (mut child, registration) = orphans::register(start).map_err(failed)?;
        let (Some(control), output, report_pipe) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::Error::other("the guard has no pipes")));
        };
        Ok(Running {
            control,
            output,
            report_pipe,
            report: Vec::new(),
            met: Met::default(),
            drain_until: None,
            guard: child,
            _registration: registration,
        })
    }
}

impl Target {
    /// The sandbox a call gets, in words; none if it runs outside of any.
    pub fn sandbox_words(&self, plan: &GuardPlan, confinement: Confinement) -> Option<String> {
        let profile = self.sandbox().profile(confinement, self, plan.state_dir.clone());
        profile.map(|profile| profile.words())
    }

    /// What the sandbox kept from a command that was about `reach` and met this, as far as facts tell. Blocks on the file
    /// system.
    pub fn refusal(&self, plan: &GuardPlan, confinement: Confinement, reach: &Reach, met: Met) -> Option<Refusal> {
        let profile = self.sandbox().profile(confinement, self, plan.state_dir.clone())?;
        Some(Refusal::look(&profile, reach, met))
    }

    /// The environment of a command: in a sandbox without what acts for the person, and where nobody looked at the call
    /// only what is needed, with git's programs switched off.
    fn confined_environment(&self, confinement: Confinement, profile: Option<&Profile>) -> BTreeMap<String, String> {
        let mut environment = self.environment().clone();
        if confinement == Confinement::ReadOnly {
            environment::scrub(&mut environment, self.roots().iter().map(|root| root.path.as_path()));
        }
        if let Some(profile) = profile {
            environment.retain(|name, _| !environment::is_personal(name));
            environment.extend(sandbox::variables(profile));
        }
        environment
    }
}

impl Running {
    /// What happens next; after [`CommandEvent::Ended`] nothing does. Dropping the future loses nothing.
    pub async fn next(&mut self) -> CommandEvent {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut line = [0; 256];
        while self.output.is_some() || self.report_pipe.is_some() {
            tokio::select! {
                biased;
                read = read(&mut self.output, &mut chunk) => match read {
                    0 => self.output = None,
                    length => {
                        chunk.truncate(length);
                        return CommandEvent::Output(chunk);
                    }
                },
                read = read(&mut self.report_pipe, &mut line) => self.reported(line.get(..read).unwrap_or_default()),
                () = until(self.drain_until) => self.output = None,
            }
        }
        CommandEvent::Ended(self.end().await)
    }

    /// What it met at the walls of its sandbox; known after [`CommandEvent::Ended`].
    #[must_use]
    pub fn met(&self) -> &Met {
        &self.met
    }

    /// Asks the command's process group to end.
    pub async fn terminate(&mut self) {
        // A guard that is gone has ended its command.
        let _ = self.control.write_all(&[TERMINATE]).await;
    }

    /// Kills the command and everything below it.
    pub async fn kill(&mut self) {
        let _ = self.control.write_all(&[KILL]).await;
    }

    /// Kills the guard itself, where it no longer obeys; what is below it is killed too.
    pub async fn force(&mut self) {
        let _ = self.guard.start_kill();
    }

    /// Takes a piece of the report. Its line end counts as its end: a guard may have to outlive it.
    fn reported(&mut self, piece: &[u8]) {
        self.report.extend_from_slice(piece);
        if piece.is_empty() || piece.contains(&b'\n') || self.report.len() > REPORT_LIMIT_BYTES {
            self.report_pipe = None;
            self.drain_until = Some(Instant::now() + DRAIN_LIMIT);
        }
    }

    async fn end(&mut self) -> CommandEnd {
        let end = parse_report(&String::from_utf8_lossy(&self.report)).map(|(end, met)| {
            self.met = met;
            end
        });
        // The runtime's reaper takes what does not end in time.
        let _ = tokio::time::timeout(REAP_LIMIT, self.guard.wait()).await;
        let lost = || CommandEnd::Failed("the command's guard was killed, and the command with it".into());
        if end.is_none() {
            // A sweep that panics has killed less than it could; the next one goes on.
            let _ = tokio::task::spawn_blocking(orphans::sweep).await;
        }
        end.unwrap_or_else(lost)
    }
}

async fn read(pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match pipe {
        // A pipe that cannot be read has nothing more to say.
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn parse_report(report: &str) -> Option<(CommandEnd, Met)> {
    let (word, rest) = report.strip_suffix('\n')?.split_once(' ')?;
    if word == "failed" {
        return Some((CommandEnd::Failed(rest.to_string()), Met::default()));
    }
    let (number, met) = match rest.split_once(' ') {
        Some((number, met)) => (number, Met::parse(met)?),
        None => (rest, Met::default()),
    };
    let number = number.parse().ok()?;
    match word {
        "exit" => Some((CommandEnd::Exited(number), met)),
        "signal" => Some((CommandEnd::Signalled(number), met)),
        _ => None,
    }
}

/// The program and arguments that run `command`. Start-up files are not read: a command means the same in every session.
fn shell_line(path: Option<&str>, command: &str) -> Vec<OsString> {
    let in_path = path
        .unwrap_or_default()
        .split(':')
        .map(Path::new)
        .filter(|dir| dir.is_absolute());
    let mut places = BASH_PLACES
        .iter()
        .map(PathBuf::from)
        .chain(in_path.map(|dir| dir.join("bash")));
    match places.find(|place| place.is_file()) {
        Some(bash) => vec![
            bash.into(),
            "--norc".into(),
            "--noprofile".into(),
            "-c".into(),
            command.into(),
        ],
        None => vec![SH.into(), "-c".into(), command.into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::sandbox::Sought;

    #[test]
    fn a_report_is_believed_only_when_it_is_whole() {
        let plain = |end| Some((end, Met::default()));
        assert_eq!(parse_report("exit 3\n"), plain(CommandEnd::Exited(3)));
        assert_eq!(parse_report("signal 15\n"), plain(CommandEnd::Signalled(15)));
        assert_eq!(
            parse_report("failed no such file here\n"),
            plain(CommandEnd::Failed("no such file here".into()))
        );
        let met = Met {
            sought: Sought {
                here: true,
                ..Sought::default()
            },
            repositories: vec!["/r/a [b/.git".into()],
        };
        let both = format!("signal 15{}\n", met.words());
        assert_eq!(parse_report(&both), Some((CommandEnd::Signalled(15), met)));
        let cut = both.replace("}\n", "\n");
        for broken in [
            "",
            "exit 3",
            "exit\n",
            "exit 3 beyond\n",
            "exit 3 [\n",
            &cut,
            "thread panicked\n",
        ] {
            assert_eq!(parse_report(broken), None, "{broken:?}");
        }
    }
}
