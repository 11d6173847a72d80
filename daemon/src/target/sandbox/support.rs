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

/// What this machine can enforce. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The best sandbox that could be made; none if no sandbox can be.
    pub form: Option<Form>,
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
        let mut detail = what.to_owned();
        for reason in &self.missing {
            detail.push_str("; ");
            detail.push_str(reason);
        }
        let signals = if self.landlock >= LANDLOCK_SIGNALS {
            (
                Standing::Good,
                format!(
                    "Landlock {}: commands cannot signal processes outside of their sandbox",
                    self.landlock
                ),
            )
        } else if self.landlock > 0 {
            (
                Standing::Reduced,
                format!("Landlock {}: commands can signal your other processes", self.landlock),
            )
        } else {
            (
                Standing::Missing,
                "no Landlock: commands can signal your other processes".to_owned(),
            )
        };
        vec![
            Check {
                name: "sandbox",
                standing,
                detail,
            },
            Check {
                name: "signals",
                standing: signals.0,
                detail: signals.1,
            },
        ]
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
        return Some(String::new());
    }
    serde_json::to_string(&found(Path::new(&state_dir))).ok()
}

#[cfg(target_os = "linux")]
fn found(state_dir: &Path) -> Support {
    let mut support = Support {
        form: None,
        landlock: landlock_version(),
        missing: Vec::new(),
    };
    for form in [Form::Namespaces, Form::Landlock] {
        if form == Form::Landlock && support.landlock < LANDLOCK_ENOUGH {
            support.missing.push(format!(
                "the kernel's Landlock has version {}, {LANDLOCK_ENOUGH} is needed",
                support.landlock
            ));
            break;
        }
        match try_form(form, state_dir.to_owned()) {
            Ok(()) => {
                support.form = Some(form);
                break;
            }
            Err(error) => support.missing.push(error.to_string()),
        }
    }
    support
}

/// Starts this program again inside of the strictest sandbox of this form.
#[cfg(target_os = "linux")]
fn try_form(form: Form, state_dir: PathBuf) -> std::io::Result<()> {
    use super::{Ghosts, Mode, Network, Plan, Profile, Secrets, enforce};
    let profile = Profile {
        form,
        mode: Mode::ReadOnly,
        network: Network::Off,
        state_dir,
        roots: Vec::new(),
        home: None,
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
    let mut child = crate::target::told::spawn(command, move || enforce(&plan, &profile, || Ok(())))?;
    let status = child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!(
            "a program does not run inside: {status}"
        )))
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
