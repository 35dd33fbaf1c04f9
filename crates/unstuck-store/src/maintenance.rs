//! What can be done to a store as a whole.

use serde::Serialize;
use unstuck_core::Timestamp;

/// Something to be done to the store as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceTask {
    /// Looks for damage: in the file, and between the events and what was folded from them.
    Check,
    /// Gives the room of deleted runs back to the disk.
    Vacuum,
    /// Deletes the runs that were done before this moment, with their events and calls; what was counted by the hour stays.
    Prune(Timestamp),
}

/// What was done to the store as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaintenanceReport {
    /// What a check found.
    Checked {
        /// What is wrong; nothing if all is well.
        findings: Vec<IntegrityFinding>,
        /// How many runs there are.
        runs: u64,
        /// How many events there are.
        events: u64,
    },
    /// How large the store was and is, in bytes.
    Vacuumed {
        /// Before.
        before: u64,
        /// After.
        after: u64,
    },
    /// What was deleted.
    Pruned {
        /// How many runs.
        runs: u64,
        /// How many events.
        events: u64,
        /// How many older runs were kept, since they can still be taken up again.
        kept: u64,
    },
}

/// Something that is wrong in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntegrityFinding {
    /// What it is about: `file`, a run's id, `hourly`, `cost_from_row`, `tries` or `projects`.
    #[serde(rename = "id")]
    pub subject: String,
    /// What is wrong.
    pub problem: String,
}

impl IntegrityFinding {
    pub(crate) fn new(id: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            subject: id.into(),
            problem: problem.into(),
        }
    }
}
