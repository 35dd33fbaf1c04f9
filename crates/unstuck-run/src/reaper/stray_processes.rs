//! Processes left behind by a child on systems that give orphans to init instead of the reaper: all but Linux. They are
//! identified by the child's group and session, or because they were seen as descendants before. A process that left
//! both and was not seen is lost.

use std::collections::HashSet;

use rustix::process::Pid;

use crate::os_processes::{ProcessId, process_table};

/// True if orphans are not reparented to the reaper.
const HAS_NO_SUBREAPER: bool = cfg!(not(target_os = "linux"));

/// The stray processes of one child; empty on Linux.
#[derive(Debug)]
pub(super) struct StrayProcesses {
    leader: u32,
    seen: HashSet<ProcessId>,
}

impl StrayProcesses {
    /// Returns the strays of the child that leads this group.
    pub(super) fn new(leader: Pid) -> Self {
        Self {
            leader: leader.as_raw_nonzero().get().unsigned_abs(),
            seen: HashSet::new(),
        }
    }

    /// Records the current descendants: they may no longer be found when the child has ended.
    pub(super) fn record_descendants(&mut self, below: impl FnOnce() -> Vec<ProcessId>) {
        if HAS_NO_SUBREAPER {
            self.seen.extend(below());
        }
    }

    /// Returns the living strays.
    pub(super) fn alive(&self) -> Vec<ProcessId> {
        if !HAS_NO_SUBREAPER {
            return Vec::new();
        }
        let all = process_table::all_processes().into_iter();
        all.filter(|entry| self.contains(entry))
            .map(ProcessId::from)
            .collect()
    }

    /// Returns true if a process is a stray. The reaper itself may be in the group. The leader's number may be reused
    /// by now; while the leader lives it is a child of the reaper and not a stray.
    fn contains(&self, entry: &process_table::ProcessEntry) -> bool {
        let is_other = ![self.leader, std::process::id()].contains(&entry.pid);
        let is_member = [entry.group, entry.session].contains(&self.leader);
        let was_seen = || self.seen.contains(&ProcessId::from(*entry));
        is_other && !entry.is_zombie() && (is_member || was_seen())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: u32 = 4_000_000;

    fn entry(pid: u32, group: u32, session: u32) -> process_table::ProcessEntry {
        process_table::ProcessEntry {
            pid,
            parent: 1,
            group,
            session,
            state: b'S',
            started: 9,
        }
    }

    fn strays() -> StrayProcesses {
        let seen = ProcessId::from(entry(LEADER + 3, 1, 1));
        StrayProcesses {
            leader: LEADER,
            seen: HashSet::from([seen]),
        }
    }

    #[test]
    fn strays_are_found_by_group_session_or_earlier_sight() {
        let strays = strays();
        assert!(strays.contains(&entry(LEADER + 1, LEADER, 1)));
        assert!(strays.contains(&entry(LEADER + 2, LEADER + 2, LEADER)));
        assert!(strays.contains(&entry(LEADER + 3, 1, 1)));
        assert!(!strays.contains(&entry(LEADER + 4, 1, 1)));
    }

    #[test]
    fn process_with_a_reused_number_is_not_a_stray() {
        let strays = strays();
        assert!(!strays.contains(&entry(LEADER, LEADER, LEADER)));
        let later = process_table::ProcessEntry {
            started: 10,
            ..entry(LEADER + 3, 1, 1)
        };
        assert!(!strays.contains(&later));
    }

    #[test]
    fn zombies_and_the_reaper_are_not_strays() {
        let strays = strays();
        let dead = process_table::ProcessEntry {
            state: b'Z',
            ..entry(LEADER + 1, LEADER, 1)
        };
        assert!(!strays.contains(&dead));
        assert!(!strays.contains(&entry(std::process::id(), LEADER, 1)));
    }
}
