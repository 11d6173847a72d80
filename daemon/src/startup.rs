//! Becoming the one daemon of a state directory: the lock, the token, the log file, and detaching from whoever started it.

use crate::api::ListenError;
use crate::auth::Redactor;
use crate::log::LogError;
use protocol::place::{self, LockFile, PlaceError};
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Days of logs that are kept.
const LOG_FILES: usize = 7;

/// How long a start waits for a daemon that another start has begun.
const OTHER_START: Duration = Duration::from_secs(30);

/// What a detached daemon says when clients can connect.
const READY: &str = "ready";

/// Exit code of a daemon that did not start because another has its state directory: what sysexits.h calls EX_TEMPFAIL.
pub const RUNS_ALREADY: u8 = 75;

/// Why a daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("{0}")]
    Log(#[from] LogError),
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    #[error(transparent)]
    Listen(#[from] ListenErrorShown),
    #[error("{what} {}: {error}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    #[error("agentd runs already, as pid {pid}\nhint: agentctl daemon status")]
    Runs { pid: i32 },
    #[error("{0}")]
    Detached(String),
}

impl StartError {
    /// What the program ends with.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Runs { .. } => RUNS_ALREADY,
            _ => 1,
        }
    }
}

/// A listener's error for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ListenErrorShown(String);

impl From<ListenError> for StartError {
    fn from(error: ListenError) -> Self {
        Self::Listen(ListenErrorShown(error.to_string()))
    }
}

/// The state directory, held by this process alone.
#[derive(Debug)]
pub struct Claim {
    pub(crate) state_dir: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) token: String,
    /// Locked for as long as this process lives. Never unlinked: a lock on a file that is gone holds nobody off.
    lock: File,
}

/// Makes `path` and its parents, private to the user.
fn private_dir(path: &Path) -> Result<(), StartError> {
    let fail = |error| StartError::File {
        what: "cannot make the directory",
        path: path.to_owned(),
        error,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(fail)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(fail)
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Takes the state directory.
///
/// # Errors
/// `Runs` when another daemon has it; a directory or file that cannot be made.
pub fn claim() -> Result<Claim, StartError> {
    let (state_dir, socket) = (place::state_dir()?, place::socket()?);
    private_dir(&state_dir)?;
    let path = LockFile::path(&state_dir);
    let fail = |error: io::Error| StartError::File {
        what: "cannot lock",
        path: path.clone(),
        error,
    };
    let lock = open_private(&path).map_err(fail)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Claim {
            token: new_token().map_err(fail)?,
            state_dir,
            socket,
            lock,
        }),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StartError::Runs {
            pid: running(&path).map_or(0, |found| found.pid),
        }),
        Err(errno) => Err(fail(errno.into())),
    }
}

fn running(lock: &Path) -> Option<LockFile> {
    LockFile::parse(&std::fs::read_to_string(lock).ok()?)
}

fn new_token() -> io::Result<String> {
    let mut random = [0_u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(crate::context::assemble::hex(&random))
}

impl Claim {
    /// The state directory.
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// Takes back what the lock file says: this daemon ends in order, and whoever loses it now need not start another.
    pub(crate) fn retract(&self) {
        if let Err(error) = self.lock.set_len(0) {
            tracing::warn!(%error, "the lock file goes on to name a daemon that has ended");
        }
    }

    /// Writes the token and says in the lock file where this daemon listens.
    pub(crate) fn announce(&self) -> Result<(), StartError> {
        let path = place::token_file(&self.state_dir);
        let fail = |path: PathBuf| {
            move |error| StartError::File {
                what: "cannot write",
                path,
                error,
            }
        };
        replace(&path, &self.token).map_err(fail(path.clone()))?;
        let text = LockFile {
            pid: i32::try_from(std::process::id()).unwrap_or(0),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            socket: self.socket.clone(),
        };
        let write = |mut lock: &File| {
            lock.set_len(0)?;
            lock.rewind()?;
            lock.write_all(text.text().as_bytes())
        };
        write(&self.lock).map_err(fail(LockFile::path(&self.state_dir)))
    }
}

/// Replaces a private file in one step, so that no reader sees half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let _ = std::fs::remove_file(&temporary);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&temporary, path)
}

/// Logs to a file a day in the state directory, the newest seven kept, without what `redactor` knows.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn start_logging(
    state_dir: &Path,
    redactor: Redactor,
) -> Result<tracing_appender::non_blocking::WorkerGuard, StartError> {
    use tracing_subscriber::EnvFilter;
    let directory = state_dir.join("log");
    private_dir(&directory)?;
    let files = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .filename_prefix("agentd")
        .filename_suffix("log")
        .max_log_files(LOG_FILES)
        .build(&directory)
        .map_err(|error| StartError::File {
            what: "cannot log to",
            path: directory,
            error: io::Error::other(error),
        })?;
    let (writer, guard) = tracing_appender::non_blocking(files);
    let wanted = std::env::var("AGENTD_LOG").unwrap_or_else(|_| "info".to_owned());
    // What these crates say below `info` can hold headers and messages, and so keys that nobody has learned yet.
    let capped = [
        "hyper",
        "hyper_util",
        "h2",
        "reqwest",
        "rustls",
        "zbus",
        "secret_service",
    ]
    .iter()
    .fold(wanted, |filter, target| format!("{filter},{target}=info"));
    let filter = EnvFilter::try_new(capped).unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || RedactedLog {
            redactor: redactor.clone(),
            log: writer.clone(),
        })
        .with_ansi(false)
        .init();
    Ok(guard)
}

/// A log that no key gets into. Every event is one write.
struct RedactedLog<W> {
    redactor: Redactor,
    log: W,
}

impl<W: Write> Write for RedactedLog<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.log.write_all(self.redactor.clean(&text).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }
}

/// Starts a daemon that outlives the caller, and waits until clients can connect to it. Well too if one runs already.
///
/// # Errors
/// The reason that the daemon gave.
pub fn detach() -> Result<(), StartError> {
    let begun = Instant::now();
    loop {
        match run_detached() {
            Err(StartError::Runs { .. }) => {}
            started => return started,
        }
        match wait_for_other(begun)? {
            Other::Ready => return Ok(()),
            Other::Gone => {}
        }
    }
}

/// What became of the daemon that had the state directory.
enum Other {
    /// Its socket takes connections.
    Ready,
    /// It was about to end, and the state directory is free.
    Gone,
}

fn run_detached() -> Result<(), StartError> {
    // Found out here first, so that the usual race costs no process.
    drop(claim()?);
    let fail = |error| StartError::File {
        what: "cannot start",
        path: "/proc/self/exe".into(),
        error,
    };
    let exe = std::env::current_exe().map_err(fail)?;
    let mut child = Command::new(exe)
        .args(["run", "--detached"])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut said).map_err(fail)?;
    }
    if said.trim() == READY {
        return Ok(());
    }
    let mut reason = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut reason).map_err(fail)?;
    }
    let ended = child.wait().map_err(fail)?;
    if ended.code() == Some(RUNS_ALREADY.into()) {
        return Err(StartError::Runs { pid: 0 });
    }
    Err(StartError::Detached(
        reason.trim().trim_start_matches("error: ").to_owned(),
    ))
}

/// Another daemon has the state directory: one that was started first and gets ready, or one that is ending.
fn wait_for_other(begun: Instant) -> Result<Other, StartError> {
    let state_dir = place::state_dir()?;
    loop {
        let found = running(&LockFile::path(&state_dir));
        if found.is_some_and(|found| std::os::unix::net::UnixStream::connect(found.socket).is_ok()) {
            return Ok(Other::Ready);
        }
        if begun.elapsed() > OTHER_START {
            return Err(StartError::Detached(
                "another start of agentd does not get ready\nhint: agentctl daemon logs".to_owned(),
            ));
        }
        match claim() {
            Err(StartError::Runs { .. }) => std::thread::sleep(Duration::from_millis(20)),
            free => return free.map(|_| Other::Gone),
        }
    }
}

/// The detached daemon's own first step: away from the terminal of whoever started it.
///
/// # Errors
/// When the system refuses a session of its own.
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    // SAFETY: nothing in this process has opened a descriptor above 2 yet that it means to use.
    let closed = unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    if closed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Tells the waiting start that clients can connect, and lets go of its pipes.
pub fn say_ready() {
    // The starter may be gone; the daemon lives on all the same.
    let _ = writeln!(io::stdout(), "{READY}");
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_gets_into_the_log_and_an_event_without_one_stays_as_it_is() -> anyhow::Result<()> {
        let redactor = Redactor::default();
        redactor.learn("p", ["sk-0123456789"]);
        let mut log = RedactedLog {
            redactor,
            log: Vec::new(),
        };
        assert_eq!(log.write(b"key=sk-0123456789\n")?, 18);
        log.write_all(b"nothing\n")?;
        assert_eq!(String::from_utf8(log.log)?, "key=[redacted: profile p]\nnothing\n");
        Ok(())
    }
}
