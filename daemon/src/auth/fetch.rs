//! Reading a key from a file or a command. One trailing newline is lost; anything else that is not one line is refused,
//! since it would break the header the key travels in.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::command::RunCommand;
use super::error::AuthError;
use super::{KEY_BYTES, Profile};

/// How long a key command may take; it may ask a person to touch a token, not to look for it.
pub(super) const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Bits of a file's mode that let others read it.
const OTHERS: u32 = 0o077;

/// Whether a value can be a key at all.
pub(super) fn is_usable(key: &SecretString) -> bool {
    let key = key.expose_secret();
    !key.is_empty() && key.len() <= KEY_BYTES && !key.chars().any(char::is_control)
}

/// The key, if it is one.
pub(super) fn checked(profile: &Profile, source: &str, key: SecretString) -> Result<SecretString, AuthError> {
    let (profile, source_name) = (profile.name.clone(), source.to_owned());
    match is_usable(&key) {
        true => Ok(key),
        false if key.expose_secret().is_empty() => Err(AuthError::Empty { profile, source_name }),
        false => Err(AuthError::Malformed { profile, source_name }),
    }
}

/// The key in a file.
pub(super) async fn from_file(profile: &Profile, path: &Path) -> Result<SecretString, AuthError> {
    let unreadable = |reason: String| AuthError::Unreadable {
        profile: profile.name.clone(),
        path: path.to_path_buf(),
        reason,
    };
    let owned: PathBuf = path.to_path_buf();
    let read = tokio::task::spawn_blocking(move || read(&owned)).await;
    let bytes = read
        .map_err(|_| unreadable("reading it failed".to_owned()))?
        .map_err(unreadable)?;
    one_line(profile, &format!("api_key_file = {}", path.display()), bytes)
}

/// The key a command prints within `limit`.
pub(super) async fn from_command(
    profile: &Profile,
    command: &str,
    run: &dyn RunCommand,
    limit: Duration,
) -> Result<SecretString, AuthError> {
    let failed = |reason| AuthError::Command {
        profile: profile.name.clone(),
        reason,
    };
    let run = tokio::time::timeout(limit, run.output(command, KEY_BYTES));
    let bytes = match run.await {
        Ok(outcome) => outcome.map_err(failed)?,
        Err(_) => return Err(failed(format!("did not end within {} s", limit.as_secs()))),
    };
    one_line(profile, "api_key_command", bytes)
}

fn one_line(profile: &Profile, source: &str, mut bytes: Vec<u8>) -> Result<SecretString, AuthError> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    let malformed = || AuthError::Malformed {
        profile: profile.name.clone(),
        source_name: source.to_owned(),
    };
    let text = String::from_utf8(bytes).map_err(|_| malformed())?;
    checked(profile, source, SecretString::from(text))
}

/// Opens without waiting, so that a pipe in place of a file does not hold up a turn.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if metadata.permissions().mode() & OTHERS != 0 {
        tracing::warn!(path = %path.display(), "others may read this key file: set its mode to 600");
    }
    let mut bytes = Vec::new();
    // Two more for the line end that is lost, one more to notice that it is too long.
    file.take(KEY_BYTES as u64 + 3)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}
