//! Writing a file in one step: a reader sees the old content or the new, never half of it, and a crash leaves one of them.
//! The new content goes to a private file in the same opened directory, gets the old file's mode and owner, is synced, and
//! takes the name; right before that the name must still mean what was looked at.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::open::{open_beneath, open_error};
use super::resolve::Resolved;
use super::{FileId, Target, TargetError, harden};

/// Mode bits a file and a directory get before the mask.
const FILE_MODE: u32 = 0o666;
const DIRECTORY_MODE: u32 = 0o777;

/// Permission bits that are kept; set-user-id and its like never survive a write.
const KEPT_MODE: u32 = 0o777;

/// What the name meant when the new content was decided on.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// Nothing.
    Absent,
    /// This file, unchanged.
    File(Stat),
}

/// What a write did besides writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Other names the old file had; they keep the old content.
    pub other_links: u64,
}

impl Target {
    /// Replaces or creates the file, its missing directories too.
    ///
    /// # Errors
    /// The name no longer means what was expected, the file is write-protected, or the system refuses.
    pub fn replace(&self, resolved: &Resolved, content: &[u8], expected: Expected) -> Result<Written, TargetError> {
        self.check_not_hidden(resolved)?;
        let (dir, name) = self.parent(resolved)?;
        let mode = match expected {
            Expected::Absent => FILE_MODE & !harden::inherited().umask,
            Expected::File(stat) if stat.st_mode & 0o222 == 0 => {
                let text = format!(
                    "{}: is write-protected (mode {:o}); nothing was written",
                    resolved.shown,
                    stat.st_mode & 0o7777
                );
                return Err(TargetError::Refused(text));
            }
            Expected::File(stat) => stat.st_mode & KEPT_MODE,
        };
        let temporary = Temporary::create(&dir, content, mode, expected).map_err(|error| failed(resolved, error))?;
        if !still_is(&dir, &name, expected) {
            return Err(TargetError::Changed(resolved.shown.clone()));
        }
        temporary
            .take_name(&name, expected)
            .map_err(|error| failed(resolved, error))?;
        let links = match expected {
            Expected::File(stat) => stat.st_nlink.saturating_sub(1),
            Expected::Absent => 0,
        };
        Ok(Written { other_links: links })
    }

    /// The directory a file is in, made if it is missing, and the file's name.
    fn parent(&self, resolved: &Resolved) -> Result<(OwnedFd, OsString), TargetError> {
        let anchor = self.anchor(resolved)?;
        let (Some(name), Some(parent)) = (anchor.rest.file_name(), anchor.rest.parent()) else {
            return Err(TargetError::Refused(format!("{}: is a directory", resolved.shown)));
        };
        let here = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        match open_beneath(anchor.dir.as_fd(), here, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(dir) => Ok((dir, name.to_os_string())),
            Err(Errno::NOENT) => {
                let dir = make_directories(anchor.dir.as_fd(), parent).map_err(|errno| open_error(resolved, errno))?;
                Ok((dir, name.to_os_string()))
            }
            Err(errno) => Err(open_error(resolved, errno)),
        }
    }
}

/// Opens `path` below `dir` component by component, making those that are missing.
fn make_directories(dir: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::fs::openat(
        dir,
        ".",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        let made = match rustix::fs::mkdirat(&here, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno),
        };
        let flags = if made { flags } else { OFlags::PATH | flags };
        here = rustix::fs::openat(&here, name, flags, Mode::empty())?;
        if made {
            let inherited_group = rustix::fs::fstat(&here)?.st_mode & 0o2000;
            let mode = (DIRECTORY_MODE & !harden::inherited().umask) | inherited_group;
            rustix::fs::fchmod(&here, Mode::from_bits_truncate(mode))?;
        }
    }
    Ok(here)
}

/// A complete new file that has no name of its own yet; removed unless it takes one.
struct Temporary<'a> {
    dir: &'a OwnedFd,
    name: Option<OsString>,
}

impl<'a> Temporary<'a> {
    fn create(dir: &'a OwnedFd, content: &[u8], mode: u32, expected: Expected) -> Result<Self, Errno> {
        let name: OsString = format!(".agentd-{}.tmp", uuid::Uuid::new_v4().simple()).into();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = std::fs::File::from(rustix::fs::openat(dir, &name, flags, Mode::RUSR | Mode::WUSR)?);
        let temporary = Self { dir, name: Some(name) };
        let written = file.write_all(content);
        written.map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
        if let Expected::File(stat) = expected {
            keep_owner(&file, &stat);
        }
        rustix::fs::fchmod(&file, Mode::from_bits_truncate(mode))?;
        rustix::fs::fsync(&file)?;
        Ok(temporary)
    }

    fn take_name(mut self, name: &OsStr, expected: Expected) -> Result<(), Errno> {
        let Some(own) = self.name.as_deref() else { return Ok(()) };
        match expected {
            Expected::File(_) => rustix::fs::renameat(self.dir, own, self.dir, name)?,
            Expected::Absent => rename_to_absent(self.dir, own, name)?,
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // It is private and named as ours; leaving it behind harms nobody.
            let _ = rustix::fs::unlinkat(self.dir, name, AtFlags::empty());
        }
    }
}

/// A privileged daemon gives the new file to the old one's owner; for others this fails, and the file is theirs as usual.
fn keep_owner(file: &std::fs::File, stat: &Stat) {
    let own = rustix::process::geteuid().as_raw() == stat.st_uid && rustix::process::getegid().as_raw() == stat.st_gid;
    if !own {
        let (uid, gid) = (
            rustix::fs::Uid::from_raw(stat.st_uid),
            rustix::fs::Gid::from_raw(stat.st_gid),
        );
        let _ = rustix::fs::fchown(file, Some(uid), Some(gid));
    }
}

/// Takes a name that must not exist, in one step where the file system can.
fn rename_to_absent(dir: &OwnedFd, own: &OsStr, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::renameat_with(dir, own, dir, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rustix::fs::renameat(dir, own, dir, name),
        done => done,
    }
}

fn still_is(dir: &OwnedFd, name: &OsStr, expected: Expected) -> bool {
    let now = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    match (now, expected) {
        (Err(Errno::NOENT), Expected::Absent) => true,
        (Ok(now), Expected::File(then)) => same(&now, &then),
        _ => false,
    }
}

/// Identity, size and both change times: a write between two looks cannot keep all of them.
fn same(now: &Stat, then: &Stat) -> bool {
    let times = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
    FileId::from(now) == FileId::from(then) && now.st_size == then.st_size && times(now) == times(then)
}

fn failed(resolved: &Resolved, errno: Errno) -> TargetError {
    match errno {
        Errno::EXIST => TargetError::Changed(resolved.shown.clone()),
        errno => TargetError::io(resolved.shown.as_str(), errno),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;
    use crate::target::TargetSpec;

    struct World {
        dir: tempfile::TempDir,
        target: Target,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let spec = TargetSpec {
                roots: vec![dir.path().into()],
                cwd: dir.path().into(),
                ..TargetSpec::default()
            };
            Self {
                target: Target::open(spec).unwrap(),
                dir,
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn resolve(&self, name: &str) -> Resolved {
            self.target.resolve(name).unwrap()
        }

        fn seen(&self, name: &str) -> Expected {
            Expected::File(self.target.open_file(&self.resolve(name)).unwrap().stat)
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(self.dir.path()).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_file_is_created_with_its_parents_and_the_usual_mode() {
        let world = World::new();
        world
            .target
            .replace(&world.resolve("a/b/new.txt"), b"hello", Expected::Absent)
            .unwrap();
        assert_eq!(std::fs::read(world.path("a/b/new.txt")).unwrap(), b"hello");
        let mask = harden::inherited().umask;
        assert_eq!(
            world.path("a/b/new.txt").metadata().unwrap().mode() & 0o777,
            0o666 & !mask
        );
        assert_eq!(world.path("a/b").metadata().unwrap().mode() & 0o777, 0o777 & !mask);
        assert_eq!(std::fs::read_dir(world.path("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_link_to_it_stays_a_link() {
        let world = World::new();
        std::fs::write(world.path("run.sh"), "old").unwrap();
        std::fs::set_permissions(world.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
        symlink("run.sh", world.path("link")).unwrap();
        world
            .target
            .replace(&world.resolve("link"), b"new", world.seen("link"))
            .unwrap();
        assert_eq!(std::fs::read(world.path("run.sh")).unwrap(), b"new");
        assert_eq!(world.path("run.sh").metadata().unwrap().mode() & 0o7777, 0o750);
        assert!(world.path("link").is_symlink());
        assert_eq!(world.names(), ["link", "run.sh"]);
    }

    #[test]
    fn other_names_of_a_file_are_counted_and_keep_the_old_content() {
        let world = World::new();
        std::fs::write(world.path("a"), "old").unwrap();
        std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
        let written = world
            .target
            .replace(&world.resolve("a"), b"new", world.seen("a"))
            .unwrap();
        assert_eq!(written, Written { other_links: 1 });
        assert_eq!(std::fs::read(world.path("b")).unwrap(), b"old");
    }

    #[test]
    fn what_changed_or_appeared_in_between_is_left_alone_and_no_trace_remains() {
        let world = World::new();
        std::fs::write(world.path("a"), "old").unwrap();
        let (seen, resolved) = (world.seen("a"), world.resolve("a"));
        std::fs::write(world.path("a"), "theirs").unwrap();
        assert!(matches!(
            world.target.replace(&resolved, b"mine", seen),
            Err(TargetError::Changed(_))
        ));
        assert!(matches!(
            world.target.replace(&resolved, b"mine", Expected::Absent),
            Err(TargetError::Changed(_))
        ));
        std::fs::remove_file(world.path("a")).unwrap();
        symlink("/etc/passwd", world.path("a")).unwrap();
        assert!(matches!(
            world.target.replace(&resolved, b"mine", seen),
            Err(TargetError::Changed(_))
        ));
        assert_eq!(world.names(), ["a"]);
    }

    #[test]
    fn a_directory_swapped_for_a_link_is_not_written_through() {
        let world = World::new();
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(world.path("sub")).unwrap();
        let resolved = world.resolve("sub/new");
        std::fs::remove_dir(world.path("sub")).unwrap();
        symlink(outside.path(), world.path("sub")).unwrap();
        assert!(world.target.replace(&resolved, b"x", Expected::Absent).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_write_protected_file_is_not_replaced() {
        let world = World::new();
        std::fs::write(world.path("a"), "old").unwrap();
        std::fs::set_permissions(world.path("a"), std::fs::Permissions::from_mode(0o444)).unwrap();
        let error = world
            .target
            .replace(&world.resolve("a"), b"new", world.seen("a"))
            .unwrap_err();
        assert!(error.to_string().contains("write-protected (mode 444)"));
        assert_eq!(std::fs::read(world.path("a")).unwrap(), b"old");
    }
}
