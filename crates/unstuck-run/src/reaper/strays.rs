//! What a child leaves behind where the system gives orphans to its first process instead of the reaper: everywhere but
//! on Linux. They are known by the child's group and session, or were seen below it while it lived. Whoever left both
//! and was not seen is lost.

use std::collections::HashSet;

use rustix::process::Pid;

use crate::host::{ProcessId, table};

/// Whether orphans are taken away from the reaper.
const ARE_TAKEN_AWAY: bool = cfg!(not(target_os = "linux"));

/// The strays of one child; none on Linux.
#[derive(Debug)]
pub(super) struct Strays {
    leader: u32,
    seen: HashSet<ProcessId>,
}

impl Strays {
    /// Those of the child that leads this group.
    pub(super) fn of(leader: Pid) -> Self {
        Self {
            leader: leader.as_raw_nonzero().get().unsigned_abs(),
            seen: HashSet::new(),
        }
    }

    /// Keeps in mind who is below now: it may not be told any more when the child has ended.
    pub(super) fn remember(&mut self, below: impl FnOnce() -> Vec<ProcessId>) {
        if ARE_TAKEN_AWAY {
            self.seen.extend(below());
        }
    }

    /// Those that live.
    pub(super) fn alive(&self) -> Vec<ProcessId> {
        if !ARE_TAKEN_AWAY {
            return Vec::new();
        }
        let all = table::all().into_iter();
        all.filter(|entry| self.has(entry))
            .map(ProcessId::from)
            .collect()
    }

    /// The reaper may be in the group itself. The leader's number may be another one's by now; while the leader lives it
    /// is below the reaper and no stray.
    fn has(&self, entry: &table::Entry) -> bool {
        let is_other = ![self.leader, std::process::id()].contains(&entry.pid);
        let is_member = [entry.group, entry.session].contains(&self.leader);
        let was_seen = || self.seen.contains(&ProcessId::from(*entry));
        is_other && !entry.is_dead() && (is_member || was_seen())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: u32 = 4_000_000;

    fn entry(pid: u32, group: u32, session: u32) -> table::Entry {
        table::Entry {
            pid,
            parent: 1,
            group,
            session,
            state: b'S',
            started: 9,
        }
    }

    fn strays() -> Strays {
        let seen = ProcessId::from(entry(LEADER + 3, 1, 1));
        Strays {
            leader: LEADER,
            seen: HashSet::from([seen]),
        }
    }

    #[test]
    fn they_are_known_by_group_by_session_and_by_sight() {
        let strays = strays();
        assert!(strays.has(&entry(LEADER + 1, LEADER, 1)));
        assert!(strays.has(&entry(LEADER + 2, LEADER + 2, LEADER)));
        assert!(strays.has(&entry(LEADER + 3, 1, 1)));
        assert!(!strays.has(&entry(LEADER + 4, 1, 1)));
    }

    #[test]
    fn whoever_took_over_a_number_is_left_alone() {
        let strays = strays();
        assert!(!strays.has(&entry(LEADER, LEADER, LEADER)));
        let later = table::Entry {
            started: 10,
            ..entry(LEADER + 3, 1, 1)
        };
        assert!(!strays.has(&later));
    }

    #[test]
    fn neither_the_dead_nor_the_reaper_are_among_them() {
        let strays = strays();
        let dead = table::Entry {
            state: b'Z',
            ..entry(LEADER + 1, LEADER, 1)
        };
        assert!(!strays.has(&dead));
        assert!(!strays.has(&entry(std::process::id(), LEADER, 1)));
    }
}
