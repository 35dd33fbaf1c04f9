//! Platforms without a sandbox: reports that there is none and never pretends otherwise.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, Signal};

use super::effective::Effective;
use super::failure::{Failure, While};
use super::git::GitEffects;
use super::profile::{Demand, Profile};
use super::wire::{Order, RunAs};

const WHY: &str = "there is no sandbox for this system";

/// Namespaces are not supported here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entered;

impl Entered {
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

/// Private copies are not supported here.
#[derive(Debug)]
pub(super) struct Copies;

/// The result of merging private copies: always empty.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) planted: Vec<PathBuf>,
    pub(super) overtaken: Vec<PathBuf>,
    pub(super) added: Vec<PathBuf>,
}

impl Copies {
    pub(super) fn prepare(
        _order: &mut Order,
        _entered: Entered,
        _project: &OwnedFd,
    ) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn is_git_private(&self) -> bool {
        false
    }

    pub(super) fn merge(self, _order: &Order, _effects: GitEffects) -> Merged {
        Merged::default()
    }
}

/// Cgroups are not supported here.
#[derive(Debug)]
pub(super) struct Cgroup;

impl Cgroup {
    pub(super) fn make(_processes: u64) -> Option<Self> {
        None
    }

    pub(super) fn take(&self, _process: Pid) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn become_user(user: RunAs) -> io::Result<()> {
    nix::unistd::setgid(user.gid.into())?;
    nix::unistd::setuid(user.uid.into())?;
    Ok(())
}

pub(super) fn enter(_profile: &Profile) -> io::Result<Entered> {
    Ok(Entered)
}

pub(super) fn confine(
    order: &Order,
    _entered: Entered,
    _project: &OwnedFd,
    folder: &OwnedFd,
) -> Result<Effective, Failure> {
    if order.profile.demand == Demand::Required || order.profile.overlay.is_some() {
        return Err(Failure::final_one("confine the command", WHY));
    }
    step_into(folder)?;
    Ok(Effective::none(WHY))
}

pub(super) fn unconfined(order: &Order, folder: &OwnedFd) -> Result<Effective, Failure> {
    if order.profile.overlay.is_some() {
        return Err(Failure::final_one("lay an overlay over the project", WHY));
    }
    step_into(folder)?;
    Ok(Effective::none("it is switched off"))
}

fn step_into(folder: &OwnedFd) -> Result<(), Failure> {
    rustix::process::fchdir(folder).to("work in the folder")
}

pub(super) fn close_to_others() -> io::Result<()> {
    Ok(())
}

pub(super) fn inherit_nothing() -> io::Result<()> {
    Ok(())
}

/// Kills the processes left in the command's groups, since nothing else would find them; returns the number of groups.
pub(super) fn left_behind(groups: &[Pid]) -> u32 {
    let is_left = |group: &&Pid| rustix::process::kill_process_group(**group, Signal::KILL).is_ok();
    u32::try_from(groups.iter().filter(is_left).count()).unwrap_or(u32::MAX)
}
