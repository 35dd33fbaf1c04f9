//! Leaves the namespaces of the machine: users, processes, messages between processes, and the network if it is off.

use std::fs;
use std::io;

use nix::sched::CloneFlags;
use rustix::process::{DumpableBehavior, getgid, getuid};

use crate::sandbox::profile::{Network, Profile, Reach, Rights};
use crate::sandbox::wire::RunAs;

use super::privileges;

/// What was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) struct Entered {
    /// Mounts can be changed, for us alone.
    pub(in crate::sandbox) mounts: bool,
    /// The next child is the first process of a namespace.
    pub(in crate::sandbox) processes: bool,
}

impl Entered {
    /// Nothing was left.
    pub(in crate::sandbox) const NOTHING: Self = Self {
        mounts: false,
        processes: false,
    };

    /// Whether mounts can be changed, for us alone.
    pub(in crate::sandbox) fn has_mounts(self) -> bool {
        self.mounts
    }

    /// As arguments of the second process.
    pub(in crate::sandbox) fn arguments(self) -> Vec<&'static str> {
        let words = [(self.mounts, MOUNTS), (self.processes, PROCESSES)];
        words
            .into_iter()
            .filter_map(|(is, word)| is.then_some(word))
            .collect()
    }

    /// From the arguments of the second process.
    pub(in crate::sandbox) fn from_arguments(arguments: &[std::ffi::OsString]) -> Self {
        Self {
            mounts: arguments.iter().any(|word| word == MOUNTS),
            processes: arguments.iter().any(|word| word == PROCESSES),
        }
    }
}

const MOUNTS: &str = "mounts";
const PROCESSES: &str = "processes";

/// Becomes another user for good.
pub(in crate::sandbox) fn become_user(user: RunAs) -> io::Result<()> {
    nix::unistd::setgroups(&[])?;
    nix::unistd::setgid(user.gid.into())?;
    nix::unistd::setuid(user.uid.into())?;
    // Or else our own files in /proc belong to root, and no user namespace can be filled.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}

/// Leaves what can be left for what a profile has to reach.
pub(in crate::sandbox) fn enter(profile: &Profile) -> io::Result<Entered> {
    let reach = profile.reach;
    let off = match profile.network {
        Network::On => CloneFlags::empty(),
        Network::Off => CloneFlags::CLONE_NEWNET,
    };
    if reach == Reach::Looks {
        // In a user namespace nobody outside of it could be looked into. Root can do without.
        if getuid().is_root() {
            nix::sched::unshare(CloneFlags::CLONE_NEWIPC | off)?;
            return Ok(Entered {
                mounts: true,
                processes: false,
            });
        }
        return Ok(Entered::NOTHING);
    }
    let processes = match reach {
        Reach::Own => CloneFlags::CLONE_NEWPID,
        Reach::Signals | Reach::Looks => CloneFlags::empty(),
    };
    let entered = Entered {
        mounts: true,
        processes: reach == Reach::Own,
    };
    // A user namespace of our own would know no other user. Root can do without, where it is not confined itself.
    if profile.rights == Rights::Anyones
        && getuid().is_root()
        && nix::sched::unshare(CloneFlags::CLONE_NEWIPC | processes | off).is_ok()
    {
        return Ok(entered);
    }
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWIPC | processes | off)?;
    // A group may be mapped by an ordinary user only when its list of groups can no longer change.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    privileges::hand_down()?;
    Ok(entered)
}
