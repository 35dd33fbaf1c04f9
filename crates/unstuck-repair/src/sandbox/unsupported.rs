//! The sandbox layers on systems other than Linux: there are none, and all of them report that.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, Signal};

use super::confinement_report::ConfinementReport;
use super::git_dirs::AllowedGitDirChanges;
use super::sandbox_profile::{SandboxMode, SandboxProfile};
use super::setup_failure::{SandboxIoContext, SetupFailure};
use super::wire::{RunAs, SandboxRequest};

const UNSUPPORTED_REASON: &str = "the sandbox does not support this operating system";

/// The entered namespaces: none on this system.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnteredNamespaces;

impl EnteredNamespaces {
    pub(super) const NOTHING: Self = Self;

    pub(super) fn has_mounts(self) -> bool {
        false
    }

    pub(super) fn arguments(self) -> Vec<&'static str> {
        Vec::new()
    }

    pub(super) fn from_arguments(_arguments: &[OsString]) -> Self {
        Self
    }
}

/// The private copies for a command: none on this system.
#[derive(Debug)]
pub(super) struct PrivateCopies;

/// The result of merging private copies: always empty on this system.
#[derive(Debug, Default)]
pub(super) struct MergeReport {
    pub(super) removed_injections: Vec<PathBuf>,
    pub(super) conflicting_changes: Vec<PathBuf>,
    pub(super) added: Vec<PathBuf>,
}

impl PrivateCopies {
    pub(super) fn prepare(
        _order: &mut SandboxRequest,
        _entered: EnteredNamespaces,
        _project: &OwnedFd,
    ) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn is_git_private(&self) -> bool {
        false
    }

    pub(super) fn merge(
        self,
        _order: &SandboxRequest,
        _effects: AllowedGitDirChanges,
    ) -> MergeReport {
        MergeReport::default()
    }
}

/// A cgroup with a process limit: never created on this system.
#[derive(Debug)]
pub(super) struct Cgroup;

impl Cgroup {
    pub(super) fn create(_processes: u64) -> Option<Self> {
        None
    }

    pub(super) fn add_process(&self, _process: Pid) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn become_user(user: RunAs) -> io::Result<()> {
    nix::unistd::setgid(user.gid.into())?;
    nix::unistd::setuid(user.uid.into())?;
    Ok(())
}

pub(super) fn enter_namespaces(_profile: &SandboxProfile) -> io::Result<EnteredNamespaces> {
    Ok(EnteredNamespaces)
}

pub(super) fn confine_process(
    order: &SandboxRequest,
    _entered: EnteredNamespaces,
    _project: &OwnedFd,
    folder: &OwnedFd,
) -> Result<ConfinementReport, SetupFailure> {
    if order.profile.mode == SandboxMode::Required || order.profile.overlay.is_some() {
        return Err(SetupFailure::permanent(
            "confine the command",
            UNSUPPORTED_REASON,
        ));
    }
    change_dir(folder)?;
    Ok(ConfinementReport::none(UNSUPPORTED_REASON))
}

pub(super) fn enter_unconfined(
    order: &SandboxRequest,
    folder: &OwnedFd,
) -> Result<ConfinementReport, SetupFailure> {
    if order.profile.overlay.is_some() {
        return Err(SetupFailure::permanent(
            "mount an overlay over the project",
            UNSUPPORTED_REASON,
        ));
    }
    change_dir(folder)?;
    Ok(ConfinementReport::none("disabled by configuration"))
}

fn change_dir(folder: &OwnedFd) -> Result<(), SetupFailure> {
    rustix::process::fchdir(folder).context("change to the working directory")
}

pub(super) fn disable_inspection() -> io::Result<()> {
    Ok(())
}

pub(super) fn close_descriptors_on_exec() -> io::Result<()> {
    Ok(())
}

/// Ends the processes that the command left in its groups, and returns the number of these groups.
pub(super) fn end_leftovers(groups: &[Pid]) -> u32 {
    let is_left = |group: &&Pid| rustix::process::kill_process_group(**group, Signal::KILL).is_ok();
    u32::try_from(groups.iter().filter(is_left).count()).unwrap_or(u32::MAX)
}
