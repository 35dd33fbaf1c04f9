//! The identity of a process, even if its number was reused since.

use serde::{Deserialize, Serialize};

use super::process_table;

/// A process, identified by its number and start time.
///
/// ```
/// use unstuck_run::process::ProcessId;
///
/// let own = ProcessId::own();
/// assert!(own.is_alive());
/// let earlier = ProcessId { started: own.started - 1, ..own };
/// assert!(!earlier.is_alive());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Its start time: on Linux in clock ticks since boot, elsewhere in seconds since 1970.
    pub started: u64,
}

impl ProcessId {
    /// Returns the calling process.
    pub fn own() -> Self {
        let pid = std::process::id();
        Self::from_pid(pid).unwrap_or(Self { pid, started: 0 })
    }

    /// Returns the process that has this number now, if there is one.
    pub fn from_pid(pid: u32) -> Option<Self> {
        let started = process_table::find_process(pid)?.started;
        Some(Self { pid, started })
    }

    /// Returns true if this very process still runs; a zombie does not.
    pub fn is_alive(&self) -> bool {
        process_table::find_process(self.pid)
            .is_some_and(|entry| entry.started == self.started && !entry.is_zombie())
    }
}

impl From<process_table::ProcessEntry> for ProcessId {
    fn from(entry: process_table::ProcessEntry) -> Self {
        Self {
            pid: entry.pid,
            started: entry.started,
        }
    }
}
