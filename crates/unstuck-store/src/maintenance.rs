//! Maintenance tasks and their reports.

use serde::Serialize;
use unstuck_core::Timestamp;

/// A maintenance task for the whole store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceTask {
    /// Checks the file for damage and the projections against the events.
    Check,
    /// Reclaims the disk space of deleted runs.
    Vacuum,
    /// Deletes runs that finished before this time, with their events and calls; hourly counts stay.
    Prune(Timestamp),
}

/// The result of a maintenance task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaintenanceReport {
    /// The result of a check.
    Checked {
        /// The problems found; empty if the store is sound.
        findings: Vec<IntegrityFinding>,
        /// The number of runs.
        runs: u64,
        /// The number of events.
        events: u64,
    },
    /// The size of the store, in bytes.
    Vacuumed {
        /// The size before.
        before: u64,
        /// The size after.
        after: u64,
    },
    /// The deleted data.
    Pruned {
        /// The number of runs.
        runs: u64,
        /// The number of events.
        events: u64,
        /// The number of older runs that were kept because they can still be resumed.
        kept: u64,
    },
}

/// An inconsistency in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntegrityFinding {
    /// The affected part: `file`, a run id, `hourly`, `spent`, `tries` or `projects`.
    pub subject: String,
    /// The problem.
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
