//! Where things are: the state directory, the config file, the socket. Daemon and clients ask the same questions here, so that
//! they find each other.

use std::path::{Path, PathBuf};

/// Longest socket path the system takes, without the final zero byte.
#[cfg(target_os = "linux")]
pub const SOCKET_PATH_BYTES: usize = 107;
/// Longest socket path the system takes, without the final zero byte.
#[cfg(not(target_os = "linux"))]
pub const SOCKET_PATH_BYTES: usize = 103;

/// A place that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("no home directory is known\nhint: set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME")]
    NoHome,
    #[error("{name} is not an absolute path: {value}\nhint: give it from the root")]
    NotAbsolute { name: &'static str, value: String },
    #[error("the socket path has {} bytes, over the system's {SOCKET_PATH_BYTES}: {}\nhint: set AGENTD_SOCKET to a shorter path", path.as_os_str().len(), path.display())]
    SocketTooLong { path: PathBuf },
}

/// The directory that `name` names, if it is set and not empty.
fn directory(name: &'static str) -> Result<Option<PathBuf>, PlaceError> {
    match std::env::var_os(name) {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) if Path::new(&value).is_absolute() => Ok(Some(value.into())),
        Some(value) => Err(PlaceError::NotAbsolute {
            name,
            value: value.to_string_lossy().into_owned(),
        }),
    }
}

/// The user's home: `HOME`, else what the user database says.
///
/// # Errors
/// When neither names one.
pub fn home() -> Result<PathBuf, PlaceError> {
    if let Some(home) = directory("HOME")? {
        return Ok(home);
    }
    std::env::home_dir()
        .filter(|home| home.is_absolute())
        .ok_or(PlaceError::NoHome)
}

/// `$XDG_STATE_HOME/agentd`, else `~/.local/state/agentd`.
///
/// # Errors
/// When no home is known or the variable is relative.
pub fn state_dir() -> Result<PathBuf, PlaceError> {
    let base = match directory("XDG_STATE_HOME")? {
        Some(base) => base,
        None => home()?.join(".local/state"),
    };
    Ok(base.join("agentd"))
}

/// `$AGENTD_CONFIG`, else `$XDG_CONFIG_HOME/agentd/config.toml`, else `~/.config/agentd/config.toml`.
///
/// # Errors
/// When no home is known or a variable is relative.
pub fn config_file() -> Result<PathBuf, PlaceError> {
    match directory("AGENTD_CONFIG")? {
        Some(file) => Ok(file),
        None => usual_config_file(),
    }
}

/// The config file of somebody who names none.
///
/// # Errors
/// As [`config_file`].
pub fn usual_config_file() -> Result<PathBuf, PlaceError> {
    let base = match directory("XDG_CONFIG_HOME")? {
        Some(base) => base,
        None => home()?.join(".config"),
    };
    Ok(base.join("agentd/config.toml"))
}

/// Where a daemon that starts now makes its socket: `$AGENTD_SOCKET`, else `$XDG_RUNTIME_DIR/agentd/agentd.sock`, else in the
/// state directory.
///
/// # Errors
/// When no home is known, a variable is relative or the path is too long for a socket.
pub fn socket() -> Result<PathBuf, PlaceError> {
    let path = match directory("AGENTD_SOCKET")? {
        Some(path) => path,
        None => match directory("XDG_RUNTIME_DIR")?.filter(|dir| dir.is_dir()) {
            Some(dir) => dir.join("agentd/agentd.sock"),
            None => state_dir()?.join("agentd.sock"),
        },
    };
    if path.as_os_str().len() > SOCKET_PATH_BYTES {
        return Err(PlaceError::SocketTooLong { path });
    }
    Ok(path)
}

/// What the lock file of a live daemon says, three lines: pid, version, socket. After a crash it goes on to say so, after an end in
/// order it is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile {
    pub pid: i32,
    pub version: String,
    pub socket: PathBuf,
}

impl LockFile {
    /// The lock file's path in `state_dir`.
    pub fn path(state_dir: &Path) -> PathBuf {
        state_dir.join("agentd.lock")
    }

    /// Reads `text`; `None` if it is not whole.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let pid = lines.next()?.parse().ok()?;
        let version = lines.next()?.to_owned();
        let socket = PathBuf::from(lines.next()?);
        socket.is_absolute().then_some(Self { pid, version, socket })
    }

    /// Whether the last daemon of `state_dir` has ended because it was told to, or because nobody needed it.
    pub fn ended_in_order(state_dir: &Path) -> bool {
        std::fs::metadata(Self::path(state_dir)).is_ok_and(|file| file.len() == 0)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.pid, self.version, self.socket.display())
    }
}

/// The token file's path in `state_dir`.
pub fn token_file(state_dir: &Path) -> PathBuf {
    state_dir.join("token")
}

/// The directory of the daemon's own log files in `state_dir`.
pub fn log_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("log")
}
