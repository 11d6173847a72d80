//! Reading a project's file: without following links, never waited for, bounded, and of nobody else's making. What is parsed later
//! are the very bytes that are hashed here.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode as FileMode, OFlags};
use sha2::{Digest, Sha256};

use crate::config::error::ConfigError;
use crate::config::trust::{Identity, hex};

/// The directory in a project's root.
const DIRECTORY: &str = ".agent";

/// The file in it.
const FILE: &str = "config.toml";

/// Bytes of the file; a real one has a few kilobytes.
const FILE_BYTES: u64 = 256 * 1024;

/// A project's file as it was read.
#[derive(Debug)]
pub struct File {
    /// Its path, for messages.
    pub path: PathBuf,
    /// The very bytes that are hashed and parsed.
    pub text: String,
    /// What trust is given to.
    pub identity: Identity,
}

/// Where the file of the project at `root` is, or would be.
#[must_use]
pub fn path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join(FILE)
}

/// Opens and reads the file of the project at `root`.
///
/// # Errors
/// A file that must not be read.
pub fn open(root: &Path) -> Result<Option<File>, ConfigError> {
    let path = path(root);
    let refused = |reason: &str| ConfigError::Unreadable {
        path: path.clone(),
        reason: reason.to_owned(),
    };
    let failed = |error: rustix::io::Errno| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR | rustix::io::Errno::MLINK => {
            refused("it is or lies behind a link")
        }
        error => refused(&error.to_string()),
    };
    let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = |result: Result<OwnedFd, rustix::io::Errno>| match result {
        Ok(fd) => Ok(Some(fd)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(failed(error)),
    };
    let Some(root_fd) = opened(rustix::fs::open(
        root,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        FileMode::empty(),
    ))?
    else {
        return Ok(None);
    };
    let Some(agent) = opened(rustix::fs::openat(&root_fd, DIRECTORY, directory, FileMode::empty()))? else {
        return Ok(None);
    };
    // A FIFO would otherwise be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Some(file) = opened(rustix::fs::openat(&agent, FILE, flags, FileMode::empty()))? else {
        return Ok(None);
    };
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(refused("it is no plain file"));
    }
    if stat.st_uid != own && stat.st_uid != 0 {
        return Err(refused("it belongs to another user"));
    }
    if stat.st_mode & 0o002 != 0 {
        return Err(refused("every user may write it; chmod o-w it"));
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(file).take(FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(&error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(refused("it is larger than 256 KiB"));
    }
    let root_stat = rustix::fs::fstat(&root_fd).map_err(failed)?;
    let identity = Identity {
        root: root.to_owned(),
        device: root_stat.st_dev,
        inode: root_stat.st_ino,
        hash: hex(&Sha256::digest(&bytes)),
    };
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text"))?;
    Ok(Some(File { path, text, identity }))
}
