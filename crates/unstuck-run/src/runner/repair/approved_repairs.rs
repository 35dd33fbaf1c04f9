//! The repairs approved in this project before, and their success.

use std::collections::BTreeMap;

use unstuck_core::RunId;
use unstuck_core::event::{ApprovalSource, RepairProposed};
use unstuck_core::session_state::{RepairStates, RepairStatus};
use unstuck_store::{EventFilter, EventOrder, Store};

use crate::runner::error::RunError;

/// Largest number of past events that are read.
const MAX_EVENTS: usize = 4000;

/// Events about the success of repairs.
const EVENT_NAMES: [&str; 6] = [
    "recovery_proposed",
    "recovery_approved",
    "recovery_started",
    "recovery_executed",
    "recovery_failed",
    "recovery_resolved",
];

/// A repair that a human has approved before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PreviouslyApprovedRepair {
    /// The newest proposal of it.
    pub(crate) proposed: RepairProposed,
    /// Number of times it helped.
    pub(crate) success_count: u32,
    /// Number of times it ran.
    pub(crate) run_count: u32,
}

impl PreviouslyApprovedRepair {
    /// Summarizes its record.
    pub(crate) fn success_summary(&self) -> String {
        let times = if self.run_count == 1 { "time" } else { "times" };
        format!(
            "worked {} of {} {times} here",
            self.success_count, self.run_count
        )
    }
}

/// Loads the repairs that were approved in this project for the same failure and helped; the most reliable first.
pub(crate) async fn load_history(
    store: &Store,
    project: &str,
    fingerprint: &str,
) -> Result<Vec<PreviouslyApprovedRepair>, RunError> {
    if fingerprint.is_empty() {
        return Ok(Vec::new());
    }
    let filter = EventFilter {
        project: Some(project.to_owned()),
        names: EVENT_NAMES.map(str::to_owned).to_vec(),
        order: EventOrder::NewestFirst,
        limit: Some(MAX_EVENTS),
        ..EventFilter::default()
    };
    let mut events = store.events(&filter).await?.events;
    events.reverse();
    let mut runs: BTreeMap<RunId, RepairStates> = BTreeMap::new();
    for recorded in &events {
        let repairs = runs.entry(recorded.run.clone()).or_default();
        repairs.apply(recorded);
    }
    let mut all: BTreeMap<String, PreviouslyApprovedRepair> = BTreeMap::new();
    for repair in runs.values().flat_map(RepairStates::all) {
        let proposed = &repair.proposed;
        let by_person = repair.source == Some(ApprovalSource::Human);
        let was_run = matches!(
            repair.status,
            RepairStatus::Helped | RepairStatus::Failed | RepairStatus::Executed
        );
        if proposed.fingerprint != fingerprint || !by_person || !was_run {
            continue;
        }
        let one = all
            .entry(proposed.command.clone())
            .or_insert_with(|| PreviouslyApprovedRepair {
                proposed: proposed.clone(),
                success_count: 0,
                run_count: 0,
            });
        one.run_count += 1;
        one.success_count += u32::from(repair.status == RepairStatus::Helped);
    }
    let mut helped: Vec<_> = all
        .into_values()
        .filter(|one| one.success_count > 0)
        .collect();
    helped.sort_by_key(|one| {
        std::cmp::Reverse((
            one.success_count * 100 / one.run_count.max(1),
            one.success_count,
        ))
    });
    Ok(helped)
}
