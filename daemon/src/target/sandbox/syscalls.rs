//! System calls a sandboxed command does not get: those that look into other processes, change mounts or namespaces,
//! load code into the kernel, reach devices of terminals, or go around the other filters.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::{Form, Network, Profile};

/// Refused with EPERM whatever their arguments are.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_userfaultfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
];

/// Refused as if the kernel had none of them, so that programs fall back to what is looked at: the arguments of `clone3`
/// lie in memory that no filter reads, and what `io_uring` does passes no filter at all.
const UNKNOWN: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Namespaces nobody may make: inside a new one a command would have privileges again.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests that are refused: those to a terminal that type into it, and those that make a subvolume of btrfs or bcachefs,
/// which is a directory that no other call has named.
const REQUESTS: &[u64] = &[
    0x5412,
    0x541c,
    0x5000_9401,
    0x5000_940e,
    0x5000_9417,
    0x5000_9418,
    0x4020_bc10,
];

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

/// Installs the filters; they hold for everything the process becomes and starts. Sets `no_new_privs`.
pub(super) fn filter(profile: &Profile) -> io::Result<()> {
    for program in programs(profile).map_err(io::Error::other)? {
        seccompiler::apply_filter(&program).map_err(io::Error::other)?;
    }
    #[cfg(target_arch = "x86_64")]
    seccompiler::apply_filter(&without_x32()).map_err(io::Error::other)?;
    Ok(())
}

fn programs(profile: &Profile) -> Result<[BpfProgram; 2], seccompiler::Error> {
    let program = |rules, errno: libc::c_int| {
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        Ok::<_, seccompiler::Error>(SeccompFilter::new(rules, SeccompAction::Allow, refuse, ARCH)?.try_into()?)
    };
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    Ok([
        program(refused(profile)?, libc::EPERM)?,
        program(unknown, libc::ENOSYS)?,
    ])
}

/// Calls that give something a name, whatever their arguments are; of `openat2` only its memory says.
const MAKING_NAMES: &[libc::c_long] = &[
    libc::SYS_openat2,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
];

/// A filter that notifies of calls that make names. The compiler of filters has no word for that, so it is told of another
/// action that nothing else here uses, whose code is then exchanged.
pub(super) fn making_names() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: Rules = MAKING_NAMES.iter().map(|call| (*call, Vec::new())).collect();
    let create = u64::from(libc::O_CREAT.unsigned_abs());
    let creates = |flags: u8| rule(&[(flags, SeccompCmpOp::MaskedEq(create), create)]);
    rules.insert(libc::SYS_openat, vec![creates(2)?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![creates(1)?]);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), ARCH)?;
    let mut program: BpfProgram = filter.try_into()?;
    for line in &mut program {
        if line.code == RETURN && line.k == libc::SECCOMP_RET_TRACE {
            line.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    Ok(program)
}

/// The code of the instruction that ends a filter with a constant.
const RETURN: u16 = 0x06;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused(profile: &Profile) -> Result<Rules, seccompiler::Error> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut new_namespace = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        new_namespace.push(rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])?);
    }
    rules.insert(libc::SYS_clone, new_namespace.clone());
    rules.insert(libc::SYS_unshare, new_namespace);
    let requests = REQUESTS.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socket, sockets(profile)?);
    Ok(rules)
}

/// Which sockets are refused. Where the file system cannot hide the sockets of others, none of their kind may be made.
fn sockets(profile: &Profile) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let mut allowed = Vec::new();
    if profile.form == Form::Namespaces {
        allowed.push(libc::AF_UNIX);
    }
    if profile.form == Form::Namespaces || profile.network == Network::On {
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if allowed.is_empty() {
        // Without a condition every call is refused.
        return Ok(Vec::new());
    }
    let others: Vec<_> = allowed
        .iter()
        .map(|domain| (0, SeccompCmpOp::Ne, u64::from(domain.unsigned_abs())))
        .collect();
    Ok(vec![rule(&others)?])
}

/// A rule that speaks when every condition holds. Only the low half of an argument counts, as in the kernel.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::Error> {
    let conditions = conditions
        .iter()
        .map(|(argument, operator, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

/// The second set of numbers for the same calls on x86-64, which no list above knows, is refused as a whole.
#[cfg(target_arch = "x86_64")]
fn without_x32() -> BpfProgram {
    /// The bit that marks those numbers.
    const X32: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let line = |code, jt, jf, k| seccompiler::sock_filter { code, jt, jf, k };
    vec![
        line(LOAD_NUMBER, 0, 0, 0),
        line(JUMP_IF_AT_LEAST, 0, 1, X32),
        line(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
        line(RETURN, 0, 0, ALLOW),
    ]
}
