//! What to do when the reaper itself was killed: everything that it watched over is found again and killed.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::host::{ProcessId, kill, table};
use crate::reaper::cgroup::Cgroup;

/// The variable that every child carries: whose it is.
pub(crate) const COOKIE: &str = "UNSTUCK_REAPER";

/// How long the search goes on.
const PATIENCE: Duration = Duration::from_secs(5);
const PACE: Duration = Duration::from_millis(10);

/// What is known about the processes of a dead reaper.
pub(super) struct Orphans {
    /// The dead reaper.
    pub(super) reaper: ProcessId,
    /// The child that it ran, and so the group.
    pub(super) child: Option<u32>,
    /// The cgroup that it was in.
    pub(super) cgroup: Option<Cgroup>,
}

/// The value of [`COOKIE`] for the children of a reaper.
pub(super) fn cookie(reaper: ProcessId) -> String {
    format!("{}.{}", reaper.pid, reaper.started)
}

impl Orphans {
    /// Kills them all.
    pub(super) async fn kill(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill();
            }
            let found = self.find();
            for process in &found {
                kill::one(*process, Signal::KILL);
            }
            let is_removed = self.cgroup.as_ref().is_none_or(Cgroup::remove);
            if (found.is_empty() && is_removed) || Instant::now() >= until {
                return;
            }
            sleep(PACE).await;
        }
    }

    /// The group, whoever carries the cookie, and all that those started.
    fn find(&self) -> HashSet<ProcessId> {
        let cookie = format!("{COOKIE}={}", cookie(self.reaper));
        let mut roots = table::with_variable(cookie.as_bytes());
        let in_group = |entry: &table::Entry| {
            Some(entry.group) == self.child
                && entry.started >= self.reaper.started
                && !entry.is_dead()
        };
        roots.extend(table::all().into_iter().filter(in_group));
        let below: Vec<_> = roots
            .iter()
            .flat_map(|root| table::descendants(root.pid))
            .collect();
        roots
            .into_iter()
            .chain(below)
            .map(ProcessId::from)
            .collect()
    }
}
