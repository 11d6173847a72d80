//! The files of the database: readable by their owner only whatever the umask says, and on a local disk.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::error::LogError;

const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIR: u32 = 0o700;

/// Makes `dir` and its missing parents, each for the owner alone. What exists keeps its mode.
pub(super) fn make_dir(dir: &Path) -> Result<(), LogError> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_DIR)
        .create(dir)
        .map_err(|error| LogError::open(dir, error))
}

/// Makes sure that `path` is a file with mode 0600 before SQLite opens it: SQLite gives its WAL and shared memory the mode
/// of the database.
pub(super) fn create_private(path: &Path) -> Result<(), LogError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE_FILE)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
        .map_err(|error| LogError::open(path, error))?;
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))
        .map_err(|error| LogError::open(path, error))
}

/// Makes an empty file with mode 0600 in place of whatever has this name.
pub(super) fn create_anew(path: &Path) -> Result<(), LogError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LogError::open(path, error)),
        _ => create_private(path),
    }
}

/// Makes what was written to `path` durable.
pub(super) fn sync(path: &Path) -> Result<(), LogError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| LogError::open(path, error))
}

/// Bytes an unprivileged writer may still use on the file system of `path`.
pub(super) fn free_bytes(path: &Path) -> Result<u64, LogError> {
    let status = rustix::fs::statvfs(path).map_err(|error| LogError::open(path, error))?;
    Ok(status.f_bavail.saturating_mul(status.f_frsize))
}

/// Refuses a directory on a network file system: the shared memory of a WAL and the locks do not work there, and the
/// damage shows late.
pub(super) fn refuse_network(dir: &Path) -> Result<(), LogError> {
    match network_kind(dir).map_err(|error| LogError::open(dir, error))? {
        Some(kind) => Err(LogError::NetworkFileSystem {
            path: dir.to_path_buf(),
            kind,
        }),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn network_kind(dir: &Path) -> std::io::Result<Option<String>> {
    let magic = rustix::fs::statfs(dir)?.f_type;
    // The type is a 32-bit value that some architectures sign-extend.
    let magic = (magic as u64 & 0xffff_ffff) as u32;
    if magic == FUSE_MAGIC {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        return Ok(network_fuse(&fuse_subtype(&mounts, &dir.canonicalize()?)));
    }
    Ok(NETWORK_MAGICS
        .iter()
        .find(|(number, _)| *number == magic)
        .map(|(_, name)| (*name).to_owned()))
}

#[cfg(not(target_os = "linux"))]
fn network_kind(dir: &Path) -> std::io::Result<Option<String>> {
    #[cfg(target_os = "macos")]
    if rustix::fs::statfs(dir)?.f_flags & (libc::MNT_LOCAL as u32) == 0 {
        return Ok(Some("not a local volume".to_owned()));
    }
    let _ = dir;
    Ok(None)
}

/// Numbers of statfs(2) and linux/magic.h.
#[cfg(target_os = "linux")]
const NETWORK_MAGICS: [(u32, &str); 11] = [
    (0x0000_6969, "NFS"),
    (0x0000_517b, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0x0000_564c, "NCP"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x1983_0326, "BeeGFS"),
];

#[cfg(target_os = "linux")]
const FUSE_MAGIC: u32 = 0x6573_5546;

/// FUSE serves local disks too (rootless containers live on fuse-overlayfs), so only the known remote ones are refused.
#[cfg(target_os = "linux")]
const NETWORK_FUSE: [&str; 10] = [
    "sshfs",
    "rclone",
    "s3fs",
    "gcsfuse",
    "goofys",
    "davfs",
    "curlftpfs",
    "glusterfs",
    "ceph-fuse",
    "juicefs",
];

#[cfg(target_os = "linux")]
fn network_fuse(subtype: &str) -> Option<String> {
    NETWORK_FUSE.contains(&subtype).then(|| format!("FUSE {subtype}"))
}

/// What follows `fuse.` in the type of the innermost mount above `dir`; empty where nothing does.
#[cfg(target_os = "linux")]
fn fuse_subtype(mountinfo: &str, dir: &Path) -> String {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        dir.starts_with(&point)
            .then(|| (point.len(), source.split(' ').next().unwrap_or_default()))
    });
    // Of several mounts on one point the last listed covers the others.
    let innermost = mounts.max_by_key(|(depth, _)| *depth).map_or("", |(_, kind)| kind);
    innermost.strip_prefix("fuse.").unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_innermost_mount_decides_whether_fuse_is_remote() {
        let mounts = "20 1 8:1 / / rw - ext4 /dev/sda rw\n\
            30 20 0:40 / /home/ann rw - fuse.sshfs box:/ rw\n\
            31 30 0:41 / /home/ann/local\\040disk rw - fuse.fuse-overlayfs x rw\n";
        let of = |dir: &str| network_fuse(&fuse_subtype(mounts, Path::new(dir)));
        assert_eq!(of("/home/ann/.local/state"), Some("FUSE sshfs".to_owned()));
        assert_eq!(of("/home/ann/local disk/state"), None);
        assert_eq!(of("/home/bob"), None);
    }
}
