//! A filter of system calls that are not needed to repair a project.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::sandbox::sandbox_profile::NetworkAccess;

/// System calls that are denied whatever their arguments.
const DENIED_SYSCALLS: [i64; 49] = [
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // ways around this filter, or deep into the kernel
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // mounts and namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // system administration
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
];

/// The flag of `clone` for a user namespace, in which a process would be privileged again.
const CLONE_NEW_USER: u64 = libc::CLONE_NEWUSER as u64;
/// Mask for the type of a socket, without its flags.
const SOCKET_KIND: u64 = 0xf;
/// The set-user-ID and set-group-ID mode bits.
const SET_ID_BITS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// The flags of `open` that create a file, named and unnamed.
const CREATE_FLAGS: [u64; 2] = [libc::O_CREAT as u64, UNNAMED_FILE_FLAG];
/// `O_TMPFILE` without `O_DIRECTORY`, which is part of it.
const UNNAMED_FILE_FLAG: u64 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;

/// The first system call number unknown when this was written; numbers from 424 on are the same on all architectures.
/// Newer calls may mount, open or change modes in ways that no rule here covers.
const FIRST_UNKNOWN_SYSCALL: u32 = 463;

/// `ioctl` requests that inject terminal input. Their type differs between C libraries.
const TERMINAL_INPUT_IOCTLS: [u64; 2] = [0x5412, 0x541c];

/// System calls that set a mode, with the index of that argument.
const MODE_SYSCALLS: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// System calls that may create a file, with the indexes of the flags and mode arguments.
const OPEN_SYSCALLS: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Installs the filter for this process and its descendants; returns false if the architecture is not supported.
pub(super) fn install_filter(network: NetworkAccess) -> io::Result<bool> {
    let Ok(architecture) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(false);
    };
    for program in bpf_programs(architecture, network).map_err(io::Error::other)? {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(true)
}

fn bpf_programs(
    architecture: TargetArch,
    network: NetworkAccess,
) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let refuse = |rules, errno: i32| -> Result<BpfProgram, seccompiler::Error> {
        let answer = SeccompAction::Errno(errno.cast_unsigned());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?;
        Ok(filter.try_into()?)
    };
    // As on a kernel without these calls: callers fall back to `clone` and `openat`, whose arguments can be checked.
    let unknown = [libc::SYS_clone3, libc::SYS_openat2];
    let unknown = unknown.map(|call| (call, Vec::new()));
    Ok(vec![
        refuse(syscall_rules(network)?, libc::EPERM)?,
        refuse(BTreeMap::from(unknown), libc::ENOSYS)?,
        unknown_syscalls_filter(),
    ])
}

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

fn syscall_rules(network: NetworkAccess) -> Result<SyscallRules, seccompiler::Error> {
    let mut rules: SyscallRules = DENIED_SYSCALLS
        .into_iter()
        .map(|call| (call, Vec::new()))
        .collect();
    let new_user = [masked(0, CLONE_NEW_USER, CLONE_NEW_USER)?];
    rules.insert(libc::SYS_clone, vec![rule(new_user)?]);
    rules.insert(libc::SYS_ioctl, terminal_input_rules()?);
    rules.insert(libc::SYS_socket, socket_rules(network)?);
    // An unconnected socket could be pointed at any service of the machine.
    let datagram = [masked(1, SOCKET_KIND, libc::SOCK_DGRAM as u64)?];
    rules.insert(libc::SYS_socketpair, vec![rule(datagram)?]);
    for (call, argument) in MODE_SYSCALLS {
        let set_id = SET_ID_BITS.map(|bit| rule([masked(*argument, bit, bit)?]));
        rules.insert(*call, set_id.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, flags, mode) in OPEN_SYSCALLS {
        let mut set_id = Vec::new();
        // Without one of the flags the mode is unused and may be anything.
        for create in CREATE_FLAGS {
            for bit in SET_ID_BITS {
                set_id.push(rule([
                    masked(*flags, create, create)?,
                    masked(*mode, bit, bit)?,
                ])?);
            }
        }
        rules.insert(*call, set_id);
    }
    Ok(rules)
}

/// Returns the rules against injecting terminal input.
fn terminal_input_rules() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    TERMINAL_INPUT_IOCTLS
        .into_iter()
        .map(|request| rule([equal(1, request)?]))
        .collect()
}

/// Returns the socket rules: network sockets only, and only if the network is on. A Unix socket would reach the
/// services of this machine.
fn socket_rules(network: NetworkAccess) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    if network == NetworkAccess::Off {
        return Ok(Vec::new());
    }
    let [v4, v6, netlink] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|one| one as u64);
    let raw = libc::SOCK_RAW as u64;
    Ok(vec![
        rule([differs(0, v4)?, differs(0, v6)?, differs(0, netlink)?])?,
        rule([equal(0, v4)?, masked(1, SOCKET_KIND, raw)?])?,
        rule([equal(0, v6)?, masked(1, SOCKET_KIND, raw)?])?,
        // Netlink route sockets list the machine's addresses; other netlink sockets are denied.
        rule([equal(0, netlink)?, differs(2, libc::NETLINK_ROUTE as u64)?])?,
    ])
}

fn rule(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions.into())?)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    condition(argument, SeccompCmpOp::Ne, value)
}

/// Returns a condition on the lower half of an argument; the kernel uses no more of these arguments.
fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        operator,
        value,
    )?)
}

/// Returns a filter that denies calls newer than this filter, and with them the second set of call numbers (x32) on
/// x86-64.
fn unknown_syscalls_filter() -> BpfProgram {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let jump = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    [
        (load, 0, 0, 0),
        (jump, 0, 1, FIRST_UNKNOWN_SYSCALL),
        (answer, 0, 0, unknown),
        (answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
    .into_iter()
    .map(|(code, jt, jf, k)| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    })
    .collect()
}
