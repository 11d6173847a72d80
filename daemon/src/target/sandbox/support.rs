//! What this machine can enforce, found out once by making each sandbox for real: a process of its own, because trying
//! changes the process that tries.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::target::GuardPlan;
use crate::target::guard::EXEC_GUARD;

/// The word after `exec-guard` for a process that finds out; followed by the state directory.
pub(in crate::target) const PROBE: &str = "probe";

/// The word for the process started inside of a sandbox that is tried.
const INSIDE: &str = "inside";

/// How long finding out may take. It takes milliseconds.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// The Landlock version that refuses truncating; before it a file that cannot be written could still be emptied.
#[cfg(target_os = "linux")]
const LANDLOCK_ENOUGH: u32 = 3;

/// The Landlock version that refuses signals to processes outside.
const LANDLOCK_SIGNALS: u32 = 6;

/// How a sandbox is made here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// User, mount, IPC and network namespaces, with Landlock and seccomp on top.
    Namespaces,
    /// Landlock and seccomp alone. New files directly in a root cannot be made, and no Unix sockets.
    Landlock,
}

/// Whose processes a sandboxed command sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pids {
    /// Everybody's; it may signal none of them but its own.
    #[default]
    Shared,
    /// Those it started, in a PID namespace with its own `/proc`.
    Own,
}

/// Whether the guard can look at what a command is about to make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notices {
    /// It cannot: the kernel is older than 5.5, or another supervisor has the only place.
    #[default]
    Missing,
    /// The kernel tells it and waits.
    Had,
}

/// What this machine can enforce. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The best sandbox that could be made; none if no sandbox can be.
    pub form: Option<Form>,
    /// Whose processes commands see in it.
    pub pids: Pids,
    /// Whether new repositories can be refused.
    #[serde(default)]
    pub notices: Notices,
    /// Version of Landlock in the kernel, 0 without.
    pub landlock: u32,
    /// Why there is no better sandbox, as the system said it.
    pub missing: Vec<String>,
}

/// One line of what the machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What it is about.
    pub name: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// What that means, one sentence.
    pub detail: String,
}

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Good,
    /// It works, with less.
    Reduced,
    /// It does not.
    Missing,
}

impl Support {
    /// What a person should know, one line each.
    pub fn checks(&self) -> Vec<Check> {
        let (standing, what) = match self.form {
            Some(Form::Namespaces) => (
                Standing::Good,
                "commands run in namespaces of their own, with Landlock and seccomp on top",
            ),
            Some(Form::Landlock) => (
                Standing::Reduced,
                "Landlock and seccomp only: sandboxed commands cannot make new files directly in the root, write `.git` or use Unix sockets",
            ),
            None => (
                Standing::Missing,
                "commands run without a sandbox, and fewer run without asking",
            ),
        };
        let reasons: String = self.missing.iter().map(|reason| format!("; {reason}")).collect();
        // In namespaces all that can be missing is the one for processes.
        let (of_sandbox, of_signals) = match self.form {
            Some(Form::Namespaces) => ("", reasons.as_str()),
            _ => (reasons.as_str(), ""),
        };
        let (signals, how) = self.signals();
        let mut checks = vec![
            Check {
                name: "sandbox",
                standing,
                detail: format!("{what}{of_sandbox}"),
            },
            Check {
                name: "signals",
                standing: signals,
                detail: format!("{how}{of_signals}"),
            },
        ];
        checks.extend(self.form.map(|_| self.repositories()));
        checks
    }

    /// Whether commands can be kept from making repositories.
    fn repositories(&self) -> Check {
        let (standing, detail) = match self.notices {
            Notices::Had => (
                Standing::Good,
                "commands make no repository in the project unless you let them",
            ),
            Notices::Missing => (
                Standing::Reduced,
                "the kernel does not let the guard look at what is made (seccomp's user notification): commands can make repositories in the project",
            ),
        };
        Check {
            name: "repositories",
            standing,
            detail: detail.to_owned(),
        }
    }

    /// Which processes commands can reach.
    fn signals(&self) -> (Standing, String) {
        let landlock = self.landlock;
        if self.pids == Pids::Own {
            let how = "commands see only processes they started, and can signal no other";
            (Standing::Good, how.to_owned())
        } else if landlock >= LANDLOCK_SIGNALS {
            let how = format!("Landlock {landlock}: commands see other processes, and can signal none");
            (Standing::Good, how)
        } else if landlock > 0 {
            let how = format!("Landlock {landlock}: commands can signal your other processes");
            (Standing::Reduced, how)
        } else {
            let how = "no Landlock: commands can signal your other processes";
            (Standing::Missing, how.to_owned())
        }
    }
}

/// Finds out what can be enforced. Nothing, if that cannot be found out.
pub async fn probe(plan: &GuardPlan) -> Support {
    let mut command = tokio::process::Command::new(&plan.exe);
    command.args([OsStr::new(EXEC_GUARD), OsStr::new(PROBE), plan.state_dir.as_os_str()]);
    command.env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let failed = |reason: String| Support {
        missing: vec![reason],
        ..Support::default()
    };
    match tokio::time::timeout(PROBE_LIMIT, command.output()).await {
        Ok(Ok(output)) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| failed(format!("the probe said nothing: {error}"))),
        Ok(Err(error)) => failed(format!("the probe cannot be started: {error}")),
        Err(_) => failed("the probe did not end".to_owned()),
    }
}

/// The probe's answer, as text for its standard output. `arguments` are those after [`PROBE`].
pub(in crate::target) fn answer_probe(mut arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let state_dir = arguments.next()?;
    if state_dir == INSIDE {
        // A name may be made here, whoever looks at it before.
        let made = std::fs::File::options().append(true).create(true).open("/dev/null");
        return made.ok().map(|_| String::new());
    }
    serde_json::to_string(&found(Path::new(&state_dir))).ok()
}

#[cfg(target_os = "linux")]
fn found(state_dir: &Path) -> Support {
    let mut support = Support {
        landlock: landlock_version(),
        ..Support::default()
    };
    // The first process of a namespace becomes a child of this one, to be waited for here.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let forms = [
        (Form::Namespaces, Pids::Own),
        (Form::Namespaces, Pids::Shared),
        (Form::Landlock, Pids::Shared),
    ];
    let tried = |form, pids, notices| {
        let tried = try_form(form, pids, notices, state_dir.to_owned());
        while rustix::process::wait(rustix::process::WaitOptions::empty()).is_ok() {}
        tried
    };
    for (form, pids) in forms {
        if form == Form::Landlock && support.landlock < LANDLOCK_ENOUGH {
            support.missing.push(format!(
                "the kernel's Landlock has version {}, {LANDLOCK_ENOUGH} is needed",
                support.landlock
            ));
            break;
        }
        match tried(form, pids, Notices::Missing) {
            Ok(()) => {
                (support.form, support.pids) = (Some(form), pids);
                if tried(form, pids, Notices::Had).is_ok() {
                    support.notices = Notices::Had;
                }
                break;
            }
            Err(error) => {
                let reason = error.to_string();
                if !support.missing.contains(&reason) {
                    support.missing.push(reason);
                }
            }
        }
    }
    support
}

/// Starts this program again inside of the strictest sandbox of this form; with notices, of the strictest that writes.
#[cfg(target_os = "linux")]
fn try_form(form: Form, pids: Pids, notices: Notices, state_dir: PathBuf) -> std::io::Result<()> {
    use super::{Caches, Ghosts, Mode, Network, NewRepositories, Plan, Profile, Secrets, channels, enforce};
    use crate::target::descendants::Status;
    let (mode, new_repositories) = match notices {
        Notices::Missing => (Mode::ReadOnly, NewRepositories::Allow),
        Notices::Had => (Mode::WorkspaceWrite, NewRepositories::Refuse),
    };
    let profile = Profile {
        form,
        pids,
        mode,
        network: Network::Off,
        caches: Caches::Shared,
        new_repositories,
        state_dir,
        roots: Vec::new(),
        home: None,
        homes: Vec::new(),
        hidden: Vec::new(),
        secrets: Secrets::Shown,
    };
    let plan = Plan::new(&profile, &mut Ghosts::default());
    let mut command = Command::new("/proc/self/exe");
    command
        .args([EXEC_GUARD, PROBE, INSIDE])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (ear, voice) = channels(Some(&profile))?;
    let known = plan.clone();
    let mut child = crate::target::told::spawn(command, {
        let profile = profile.clone();
        move || enforce(&known, &profile, &voice, || Ok(()))
    })?;
    // It makes one name, which waits for an answer.
    let supervisor = ear.take.map(|take| take.supervisor(plan, &profile)).transpose()?;
    let status = child.wait()?;
    let status = match ear.hear {
        // Its end is told when all of its namespace is gone.
        Some(mut hear) => hear.first().map(|_| hear.status())?,
        None => status.code().map(Status::Exited),
    };
    drop(supervisor);
    match status {
        Some(Status::Exited(0)) => Ok(()),
        status => Err(std::io::Error::other(format!(
            "a program does not run inside: {status:?}"
        ))),
    }
}

#[cfg(not(target_os = "linux"))]
fn found(_: &Path) -> Support {
    Support {
        missing: vec!["sandboxes need Linux".to_owned()],
        ..Support::default()
    }
}

#[cfg(target_os = "linux")]
fn landlock_version() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call reads no attributes; it answers with a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}
