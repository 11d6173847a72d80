//! Raw disks and other files a write to which destroys the system.

/// Beginnings of the names of disks below `/dev`.
const DISKS: &[&str] = &[
    "/dev/sd",
    "/dev/hd",
    "/dev/vd",
    "/dev/xvd",
    "/dev/nvme",
    "/dev/mmcblk",
    "/dev/dm-",
    "/dev/md",
    "/dev/loop",
    "/dev/disk",
    "/dev/mapper/",
    "/dev/rdisk",
    "/dev/ram",
    "/dev/zram",
    "/dev/nbd",
    "/dev/block/",
];

const OTHERS: &[&str] = &[
    "/dev/mem",
    "/dev/kmem",
    "/dev/port",
    "/proc/sysrq-trigger",
    "/proc/kcore",
    "/proc/kmem",
];

/// Whether an absolute path is a raw disk, memory, or another file that must never be written.
pub(super) fn is_vital(path: &str) -> bool {
    DISKS.iter().any(|disk| path.starts_with(disk))
        || OTHERS.contains(&path)
        || path.contains("/efivars/")
        || path.ends_with("/efivars")
}

/// Commands that write to each disk they name, and the options or words with which they only look.
pub(super) const DISK_WRITERS: &[(&str, &[&str])] = &[
    ("mke2fs", &["-n"]),
    ("mkswap", &[]),
    ("mkdosfs", &[]),
    ("mkntfs", &["-n"]),
    ("blkdiscard", &[]),
    ("fdisk", &["-l", "--list", "-s", "-x"]),
    ("cfdisk", &[]),
    (
        "sfdisk",
        &["-l", "-d", "--list", "--dump", "-s", "-V", "--verify", "-n"],
    ),
    ("gdisk", &["-l"]),
    (
        "sgdisk",
        &["-p", "--print", "-v", "--verify", "-i", "--info", "-P", "--pretend"],
    ),
    ("parted", &["print", "-l", "--list"]),
    ("shred", &[]),
    ("badblocks", &[]),
    ("pvcreate", &["-t", "--test"]),
    ("pvremove", &["-t", "--test"]),
    ("partx", &["-s", "--show", "-l"]),
    ("newfs", &[]),
    ("newfs_apfs", &[]),
    ("newfs_hfs", &[]),
    ("sponge", &[]),
    ("truncate", &[]),
    ("tee", &[]),
];
