//! What tells one content of a file from another without reading it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file as it was; none where there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let data = path.metadata().ok()?;
        Some(Self {
            inode: data.ino(),
            bytes: data.len(),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}
