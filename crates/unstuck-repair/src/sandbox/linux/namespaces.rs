//! Enters new namespaces: users, mounts, processes, IPC, and the network if it is off.

use std::fs;
use std::io;

use nix::sched::CloneFlags;
use rustix::process::{DumpableBehavior, getgid, getuid};

use crate::sandbox::sandbox_profile::{
    FileOwnerScope, NetworkAccess, ProcessAccess, SandboxProfile,
};
use crate::sandbox::wire::RunAs;

use super::capabilities;

/// The namespaces that were entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) struct EnteredNamespaces {
    /// If set, there is a private mount namespace.
    pub(in crate::sandbox) has_mount_namespace: bool,
    /// If set, the next child is the first process of a PID namespace.
    pub(in crate::sandbox) has_pid_namespace: bool,
}

impl EnteredNamespaces {
    /// No namespace was entered.
    pub(in crate::sandbox) const NOTHING: Self = Self {
        has_mount_namespace: false,
        has_pid_namespace: false,
    };

    /// True if there is a private mount namespace.
    pub(in crate::sandbox) fn has_mounts(self) -> bool {
        self.has_mount_namespace
    }

    /// Returns the namespaces as arguments of the init process.
    pub(in crate::sandbox) fn arguments(self) -> Vec<&'static str> {
        let words = [
            (self.has_mount_namespace, MOUNTS_ARG),
            (self.has_pid_namespace, PROCESSES_ARG),
        ];
        words
            .into_iter()
            .filter_map(|(is, word)| is.then_some(word))
            .collect()
    }

    /// Parses the arguments of the init process.
    pub(in crate::sandbox) fn from_arguments(arguments: &[std::ffi::OsString]) -> Self {
        Self {
            has_mount_namespace: arguments.iter().any(|word| word == MOUNTS_ARG),
            has_pid_namespace: arguments.iter().any(|word| word == PROCESSES_ARG),
        }
    }
}

const MOUNTS_ARG: &str = "mounts";
const PROCESSES_ARG: &str = "processes";

/// Switches to another user irrevocably.
pub(in crate::sandbox) fn become_user(user: RunAs) -> io::Result<()> {
    nix::unistd::setgroups(&[])?;
    nix::unistd::setgid(user.gid.into())?;
    nix::unistd::setuid(user.uid.into())?;
    // Otherwise our own files in /proc belong to root, and no user namespace can be mapped.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}

/// Enters the namespaces that the profile allows.
#[expect(
    clippy::disallowed_methods,
    reason = "the maps of user ids are files of the kernel in /proc/self"
)]
pub(in crate::sandbox) fn enter_namespaces(
    profile: &SandboxProfile,
) -> io::Result<EnteredNamespaces> {
    let reach = profile.process_scope;
    let off = match profile.network {
        NetworkAccess::On => CloneFlags::empty(),
        NetworkAccess::Off => CloneFlags::CLONE_NEWNET,
    };
    if reach == ProcessAccess::Inspect {
        // A user namespace would prevent inspecting processes outside of it. Root does not need one.
        if getuid().is_root() {
            nix::sched::unshare(CloneFlags::CLONE_NEWIPC | off)?;
            return Ok(EnteredNamespaces {
                has_mount_namespace: true,
                has_pid_namespace: false,
            });
        }
        return Ok(EnteredNamespaces::NOTHING);
    }
    let processes = match reach {
        ProcessAccess::Own => CloneFlags::CLONE_NEWPID,
        ProcessAccess::Signals | ProcessAccess::Inspect => CloneFlags::empty(),
    };
    let entered = EnteredNamespaces {
        has_mount_namespace: true,
        has_pid_namespace: reach == ProcessAccess::Own,
    };
    // Our own user namespace would know no other user. Root does not need one unless it is confined itself.
    if profile.file_scope == FileOwnerScope::AnyOwner
        && getuid().is_root()
        && nix::sched::unshare(CloneFlags::CLONE_NEWIPC | processes | off).is_ok()
    {
        return Ok(entered);
    }
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWIPC | processes | off)?;
    // An unprivileged user may map a group only after setgroups is disabled.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    capabilities::keep_for_next_program()?;
    Ok(entered)
}
