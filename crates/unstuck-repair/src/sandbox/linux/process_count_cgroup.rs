//! A process limit for root, whom the usual one does not bind.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the kernel in /proc and the cgroup hierarchy"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

const CGROUP_PREFIX: &str = "unstuck-repair-";

/// A cgroup for the init process and its descendants; removed on drop, after they have ended.
#[derive(Debug)]
pub(in crate::sandbox) struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a cgroup with a process limit, or returns `None` where that is not possible.
    pub(in crate::sandbox) fn create(processes: u64) -> Option<Self> {
        let parent = parent_cgroup()?;
        remove_abandoned(&parent);
        let path = parent.join(format!("{CGROUP_PREFIX}{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let cgroup = Self(path);
        fs::write(cgroup.0.join("pids.max"), processes.to_string()).ok()?;
        Some(cgroup)
    }

    /// Moves a process into the cgroup. The kernel synchronizes all CPUs for that, so only one is ever moved.
    pub(in crate::sandbox) fn add_process(&self, process: Pid) -> io::Result<()> {
        let number = process.as_raw_nonzero().to_string();
        fs::write(self.0.join("cgroup.procs"), number)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // If it cannot be removed now, the next sandbox does it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes the cgroups of sandboxes that were killed; one that still has a process stays.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(CGROUP_PREFIX));
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns the cgroup of this process in the hierarchy of the pids controller.
fn parent_cgroup() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    pids_hierarchy(&groups, &mounts)
}

/// Finds the pids hierarchy: a separate one in cgroup v1, the only one in v2.
fn pids_hierarchy(groups: &str, mounts: &str) -> Option<PathBuf> {
    let own = |which: &str| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let is_it = controllers.split(',').any(|controller| controller == which);
            is_it.then(|| fields.next())?
        })
    };
    let mounted = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut left = left.split(' ').skip(3);
            let is_whole = left.next()? == "/";
            let mut right = right.split(' ');
            let is_kind = right.next()? == kind;
            let has_option = option.is_empty() || right.nth(1)?.split(',').any(|one| one == option);
            (is_whole && is_kind && has_option).then(|| left.next().map(PathBuf::from))?
        })
    };
    let first = own("pids").zip(mounted("cgroup", "pids"));
    let (path, mount) = first.or_else(|| own("").zip(mounted("cgroup2", "")))?;
    Some(mount.join(path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_hierarchy_is_found_in_cgroup_v1_and_v2() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        let first = "8:pids:/a/b\n0::/c\n";
        let found = pids_hierarchy(first, mounts);
        assert_eq!(found, Some(PathBuf::from("/sys/fs/cgroup/pids/a/b")));
        let second = "0::/user.slice\n";
        let mounts = "31 25 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let found = pids_hierarchy(second, mounts);
        assert_eq!(found, Some(PathBuf::from("/sys/fs/cgroup/user.slice")));
        assert_eq!(pids_hierarchy(second, ""), None);
    }
}
