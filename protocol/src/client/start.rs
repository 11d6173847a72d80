//! Starting the daemon: `agentd start` detaches by itself, waits until its socket accepts and then ends, or says why not.
//! Of two clients that start one at once, the second's `agentd start` finds the first's daemon and ends well too.

use super::Autostart;
use super::error::ClientError;
use crate::place::{self, LockFile};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How long a start may take. It migrates the database first, which for a big one takes seconds.
const START: Duration = Duration::from_secs(60);

/// What is kept of the reason a start gives; it is a few lines.
const REASON_BYTES: u64 = 16 * 1024;

/// The config file of a daemon that this process starts, where that is not what the environment says.
static CONFIG: OnceLock<PathBuf> = OnceLock::new();

/// Makes `file`, an absolute path, the config file of every daemon that this process starts: what `AGENTD_CONFIG` would do, in a
/// process whose environment cannot be changed safely. The first call counts.
pub fn use_config(file: PathBuf) {
    let _ = CONFIG.set(file);
}

/// Whether a start is wanted and not opted out of.
pub(super) fn wanted(autostart: Autostart) -> bool {
    let wanted = match autostart {
        Autostart::Yes => true,
        Autostart::AfterCrash => place::state_dir().is_ok_and(|state_dir| !LockFile::ended_in_order(&state_dir)),
        Autostart::No => false,
    };
    wanted && std::env::var_os("AGENTD_AUTOSTART").is_none_or(|value| value != "0")
}

/// Starts the daemon and waits until it accepts connections; well too where one runs already.
///
/// # Errors
/// [`ClientError::Unreachable`] with the reason the daemon gave.
pub async fn start() -> Result<(), ClientError> {
    let program = program()?;
    match tokio::time::timeout(START, run(&program)).await {
        Ok(result) => result,
        Err(_) => Err(ClientError::unreachable(
            format!("{} start is not ready after {} s", program.display(), START.as_secs()),
            "see `agentctl daemon logs`",
        )),
    }
}

async fn run(program: &PathBuf) -> Result<(), ClientError> {
    let failed = |error: std::io::Error| {
        ClientError::unreachable(
            format!("cannot start {}: {error}", program.display()),
            "set AGENTD_BIN to the absolute path of agentd",
        )
    };
    let config = CONFIG.get().map(|file| ("AGENTD_CONFIG", file));
    let mut child = Command::new(program)
        .arg("start")
        .envs(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let mut reason = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        stderr
            .take(REASON_BYTES)
            .read_to_end(&mut reason)
            .await
            .map_err(failed)?;
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let (reason, hint) = reason_and_hint(&String::from_utf8_lossy(&reason));
    Err(ClientError::unreachable(
        reason.unwrap_or_else(|| format!("agentd did not start: {status}")),
        hint.unwrap_or_else(|| "see `agentctl daemon logs`".to_owned()),
    ))
}

/// The `agentd` beside this executable, else the one that `AGENTD_BIN` names by an absolute path. Never through PATH: a project
/// may set that.
fn program() -> Result<PathBuf, ClientError> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|own| Some(own.parent()?.join("agentd")));
    if let Some(beside) = beside.filter(|path| path.is_file()) {
        return Ok(beside);
    }
    let named = std::env::var_os("AGENTD_BIN").map(PathBuf::from);
    match named {
        Some(path) if path.is_absolute() => Ok(path),
        _ => Err(ClientError::unreachable(
            "agentd does not run, and there is no agentd beside this program to start",
            "install agentd beside it, or set AGENTD_BIN to its absolute path",
        )),
    }
}

/// Takes `error: …` and `hint: …` lines apart, so that they are not printed twice over.
fn reason_and_hint(text: &str) -> (Option<String>, Option<String>) {
    let mut reason = Vec::new();
    let mut hint = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_prefix("hint: ") {
            Some(line) => hint.push(line),
            None => reason.push(line.strip_prefix("error: ").unwrap_or(line)),
        }
    }
    let join = |lines: Vec<&str>| (!lines.is_empty()).then(|| lines.join("\n"));
    (join(reason), join(hint))
}

#[cfg(test)]
mod tests {
    use super::reason_and_hint;

    #[test]
    fn a_failed_start_shows_its_own_reason_and_hint() {
        let (reason, hint) = reason_and_hint("error: config.toml:3: unknown key\nhint: did you mean `model`?\n");
        assert_eq!(reason.as_deref(), Some("config.toml:3: unknown key"));
        assert_eq!(hint.as_deref(), Some("did you mean `model`?"));
        assert_eq!(reason_and_hint("\n"), (None, None));
    }
}
