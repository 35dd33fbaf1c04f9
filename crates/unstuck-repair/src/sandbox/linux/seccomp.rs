//! Which system calls a repair may not make: none of them is needed to repair a project.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::sandbox::profile::Network;

/// Refused whatever their arguments.
const NEVER: [i64; 49] = [
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
const NEW_USER: u64 = libc::CLONE_NEWUSER as u64;
/// The kind of a socket, without its flags.
const SOCKET_KIND: u64 = 0xf;
/// A mode that makes a program run as its owner.
const SET_USER: u64 = libc::S_ISUID as u64;

/// The flag of `open` that makes a file.
const CREATE: u64 = libc::O_CREAT as u64;

/// Calls that set a mode, and which argument it is.
const MODES: &[(i64, u8)] = &[
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
const OPENS: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Puts the filter in force for this process and all that it starts; whether there is one for this architecture.
pub(super) fn restrict(network: Network) -> io::Result<bool> {
    let Ok(architecture) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(false);
    };
    for program in programs(architecture, network).map_err(io::Error::other)? {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(true)
}

fn programs(
    architecture: TargetArch,
    network: Network,
) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let refuse = |rules, errno: i32| -> Result<BpfProgram, seccompiler::Error> {
        let answer = SeccompAction::Errno(errno.cast_unsigned());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?;
        Ok(filter.try_into()?)
    };
    // As on a kernel that does not know it: whoever is refused so uses `clone`, which can be looked at.
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut programs = vec![
        refuse(rules(network)?, libc::EPERM)?,
        refuse(unknown, libc::ENOSYS)?,
    ];
    if architecture == TargetArch::x86_64 {
        programs.push(no_other_numbers());
    }
    Ok(programs)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(network: Network) -> Result<Rules, seccompiler::Error> {
    let mut rules: Rules = NEVER.into_iter().map(|call| (call, Vec::new())).collect();
    let new_user = [masked(0, NEW_USER, NEW_USER)?];
    rules.insert(libc::SYS_clone, vec![rule(new_user)?]);
    rules.insert(libc::SYS_ioctl, typed()?);
    rules.insert(libc::SYS_socket, sockets(network)?);
    // One that is connected to nothing could be pointed at any service of the machine.
    let datagram = [masked(1, SOCKET_KIND, libc::SOCK_DGRAM as u64)?];
    rules.insert(libc::SYS_socketpair, vec![rule(datagram)?]);
    for (call, argument) in MODES {
        let set_user = masked(*argument, SET_USER, SET_USER)?;
        rules.insert(*call, vec![rule([set_user])?]);
    }
    for (call, flags, mode) in OPENS {
        // Without the flag the mode means nothing and may be anything.
        let creates = masked(*flags, CREATE, CREATE)?;
        let set_user = masked(*mode, SET_USER, SET_USER)?;
        rules.insert(*call, vec![rule([creates, set_user])?]);
    }
    Ok(rules)
}

/// Keys cannot be typed into somebody's terminal.
fn typed() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| rule([equal(1, request)?]))
        .collect()
}

/// Only the network, and only if it is on. A socket with a path would reach the services of this machine.
fn sockets(network: Network) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    if network == Network::Off {
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

/// Refuses the second set of numbers that some kernels of this architecture know every call by.
fn no_other_numbers() -> BpfProgram {
    const OTHER: u32 = 0x4000_0000;
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let jump = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    [
        (load, 0, 0, 0),
        (jump, 0, 1, OTHER),
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
