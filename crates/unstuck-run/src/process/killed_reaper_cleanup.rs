//! Cleans up after a reaper that was killed: finds and kills all processes that it supervised.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::os_processes::{ProcessId, process_table, send_signal};
use crate::reaper::cgroup::Cgroup;

/// Variable that marks every child with its reaper.
pub(crate) const REAPER_COOKIE: &str = "UNSTUCK_REAPER";

/// Longest duration of the search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);
const SEARCH_INTERVAL: Duration = Duration::from_millis(10);

/// The known facts about the processes of a dead reaper.
pub(super) struct OrphanedProcesses {
    /// The dead reaper.
    pub(super) reaper: ProcessId,
    /// The child that it ran, which leads the process group.
    pub(super) child: Option<u32>,
    /// Its cgroup.
    pub(super) cgroup: Option<Cgroup>,
}

/// Returns the value of [`REAPER_COOKIE`] for the children of a reaper.
pub(super) fn cookie_value(reaper: ProcessId) -> String {
    format!("{}.{}", reaper.pid, reaper.started)
}

impl OrphanedProcesses {
    /// Kills all of them.
    pub(super) async fn kill(&self) {
        let until = Instant::now() + SEARCH_TIMEOUT;
        loop {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill();
            }
            let found = self.find();
            for process in &found {
                send_signal::signal_process(*process, Signal::KILL);
            }
            let is_removed = self.cgroup.as_ref().is_none_or(Cgroup::remove);
            if (found.is_empty() && is_removed) || Instant::now() >= until {
                return;
            }
            sleep(SEARCH_INTERVAL).await;
        }
    }

    /// Returns the members of the group, the carriers of the cookie, and all their descendants.
    fn find(&self) -> HashSet<ProcessId> {
        let cookie = format!("{REAPER_COOKIE}={}", cookie_value(self.reaper));
        let mut roots = process_table::processes_with_variable(cookie.as_bytes());
        let in_group = |entry: &process_table::ProcessEntry| {
            Some(entry.group) == self.child
                && entry.started >= self.reaper.started
                && !entry.is_zombie()
        };
        roots.extend(process_table::all_processes().into_iter().filter(in_group));
        let below: Vec<_> = roots
            .iter()
            .flat_map(|root| process_table::descendants(root.pid))
            .collect();
        roots
            .into_iter()
            .chain(below)
            .map(ProcessId::from)
            .collect()
    }
}
