//! Which system calls a repair may not make: none of them is needed to repair a project.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::sandbox::sandbox_profile::NetworkAccess;

/// Refused whatever their arguments.
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
    // the machine
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

/// The flag of `clone` that begins a user namespace, in which one would be privileged again.
const CLONE_NEW_USER: u64 = libc::CLONE_NEWUSER as u64;
/// The kind of a socket, without its flags.
const SOCKET_KIND: u64 = 0xf;
/// Modes that make a program run as its owner or as its group.
const SET_ID_BITS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// The flags of `open` that make a file: by its name, and without one.
const CREATE_FLAGS: [u64; 2] = [libc::O_CREAT as u64, UNNAMED_FILE_FLAG];
/// `O_TMPFILE` without `O_DIRECTORY`, which is part of it.
const UNNAMED_FILE_FLAG: u64 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;

/// The first number of a system call that nobody looked at when this was written; they are the same on all
/// architectures from 424 on. Newer calls may mount, open or change modes in ways that no rule here knows.
const FIRST_UNKNOWN_SYSCALL: u32 = 463;

/// Requests of `ioctl` that type into a terminal. Their type differs from one C library to the other.
const TERMINAL_INPUT_IOCTLS: [u64; 2] = [0x5412, 0x541c];

/// Calls that set a mode, and which argument it is.
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

/// Calls that may make a file, and which arguments are the flags and the mode.
const OPEN_SYSCALLS: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Puts the filter in force for this process and all that it starts; whether there is one for this architecture.
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
    // As on a kernel that does not know them: whoever is refused so uses `clone` and `openat`, which can be looked at.
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
    // One that is connected to nothing could be pointed at any service of the machine.
    let datagram = [masked(1, SOCKET_KIND, libc::SOCK_DGRAM as u64)?];
    rules.insert(libc::SYS_socketpair, vec![rule(datagram)?]);
    for (call, argument) in MODE_SYSCALLS {
        let set_id = SET_ID_BITS.map(|bit| rule([masked(*argument, bit, bit)?]));
        rules.insert(*call, set_id.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, flags, mode) in OPEN_SYSCALLS {
        let mut set_id = Vec::new();
        // Without one of the flags the mode means nothing and may be anything.
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

/// Keys cannot be typed into somebody's terminal.
fn terminal_input_rules() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    TERMINAL_INPUT_IOCTLS
        .into_iter()
        .map(|request| rule([equal(1, request)?]))
        .collect()
}

/// Only the network, and only if it is on. A socket with a path would reach the services of this machine.
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
        // Which addresses the machine has is asked this way; everything else about it is not.
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

/// The kernel looks at the lower half of all these arguments only, and so does the filter.
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

/// Refuses calls that are newer than this filter, and so the second set of numbers by which some kernels of x86-64 know
/// every call.
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
