//! A cgroup for the children, if the system permits it: then everything can be ended even after the death of the
//! reaper.
//!
//! Moving processes into a cgroup makes the kernel wait for all its processors, ten milliseconds and more, so only
//! children that run for a while are moved.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the system, which no agent can put there"
)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::os_processes::ProcessId;

const CGROUP_PREFIX: &str = "unstuck-";

/// A cgroup to which children are moved.
#[derive(Debug)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a cgroup below the current one; `None` if that is not permitted.
    pub(super) fn create() -> Option<Self> {
        let own = ProcessId::own();
        let present = current_cgroup()?;
        remove_abandoned(&present);
        let path = present.join(format!("{CGROUP_PREFIX}{}-{}", own.pid, own.started));
        fs::create_dir(&path).ok()?;
        let cgroup = Self(path);
        if cgroup.0.join("cgroup.kill").exists() {
            return Some(cgroup);
        }
        cgroup.remove();
        None
    }

    /// Moves processes into it; their later children are in it too.
    pub(super) fn add_processes(&self, processes: &[ProcessId]) {
        for process in processes {
            // A process that has just ended need not be moved, and another user's cannot be.
            let _ = fs::write(self.0.join("cgroup.procs"), process.pid.to_string());
        }
    }

    /// Returns the cgroup at a path that a reaper reported.
    pub(crate) fn from_path(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Kills every process in it.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// Removes it; returns true if it is gone.
    pub(crate) fn remove(&self) -> bool {
        fs::remove_dir(&self.0).is_ok() || !self.0.exists()
    }
}

/// Removes cgroups of reapers that were killed together with their supervisor, with all processes in them.
fn remove_abandoned(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let Some(owner) = path
            .file_name()
            .and_then(OsStr::to_str)
            .and_then(owner_from_name)
        else {
            continue;
        };
        let members = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        // A member with number 0 lives in another pid namespace, and so may the owner.
        if !owner.is_alive() && !members.lines().any(|pid| pid == "0") {
            let cgroup = Cgroup(path);
            cgroup.kill();
            cgroup.remove();
        }
    }
}

/// Returns the reaper that created a cgroup of this name.
fn owner_from_name(name: &str) -> Option<ProcessId> {
    let (pid, started) = name.strip_prefix(CGROUP_PREFIX)?.split_once('-')?;
    Some(ProcessId {
        pid: pid.parse().ok()?,
        started: started.parse().ok()?,
    })
}

/// Returns true if this process is in a cgroup created by a reaper.
pub(crate) fn is_inside_reaper_cgroup() -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut names = groups.lines().flat_map(|line| line.split('/'));
    names.any(|name| owner_from_name(name).is_some())
}

/// Returns the directory of this process's cgroup.
fn current_cgroup() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let name = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    Some(mount_point(&mounts)?.join(name))
}

/// Returns the mount point of the unified cgroup hierarchy (version 2).
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = left.split(' ').skip(3);
        let is_whole = fields.next()? == "/";
        let is_ours = right.split(' ').next()? == "cgroup2";
        (is_whole && is_ours).then(|| fields.next().map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unified_mount_is_found_among_version_1_mounts() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            mount_point(mounts),
            Some(PathBuf::from("/sys/fs/cgroup/unified"))
        );
        assert_eq!(mount_point("nonsense"), None);
    }

    #[test]
    fn only_names_of_our_cgroups_have_an_owner() {
        let (pid, started) = (12, 34);
        assert_eq!(
            owner_from_name("unstuck-12-34"),
            Some(ProcessId { pid, started })
        );
        assert_eq!(owner_from_name("unstuck-12"), None);
        assert_eq!(owner_from_name("user.slice"), None);
    }
}
