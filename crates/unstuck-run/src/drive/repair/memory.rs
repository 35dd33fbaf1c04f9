//! What a person has allowed in this project before, and how often it helped.

use std::collections::BTreeMap;

use unstuck_core::RunId;
use unstuck_core::event::{ApprovalSource, RecoveryProposed};
use unstuck_core::recovery::{RepairState, Repairs};
use unstuck_store::{EventFilter, Order, Store};

use crate::drive::error::RunError;

/// So many events are looked back at.
const LOOK_BACK: usize = 4000;

/// What tells how repairs went.
const NAMES: [&str; 6] = [
    "recovery_proposed",
    "recovery_approved",
    "recovery_started",
    "recovery_executed",
    "recovery_failed",
    "recovery_resolved",
];

/// A repair that a person has allowed before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Remembered {
    /// It as it was proposed last.
    pub(crate) proposed: RecoveryProposed,
    /// How often it helped.
    pub(crate) worked: u32,
    /// How often it was run.
    pub(crate) of: u32,
}

impl Remembered {
    /// Its record, in words.
    pub(crate) fn record(&self) -> String {
        let times = if self.of == 1 { "time" } else { "times" };
        format!("worked {} of {} {times} here", self.worked, self.of)
    }
}

/// What persons have allowed in this project against this very failure, and what helped; the most reliable first.
pub(crate) async fn remembered(
    store: &Store,
    project: &str,
    fingerprint: &str,
) -> Result<Vec<Remembered>, RunError> {
    if fingerprint.is_empty() {
        return Ok(Vec::new());
    }
    let filter = EventFilter {
        project: Some(project.to_owned()),
        names: NAMES.map(str::to_owned).to_vec(),
        order: Order::NewestFirst,
        limit: Some(LOOK_BACK),
        ..EventFilter::default()
    };
    let mut events = store.events(&filter).await?.events;
    events.reverse();
    let mut runs: BTreeMap<RunId, Repairs> = BTreeMap::new();
    for recorded in &events {
        let repairs = runs.entry(recorded.run.clone()).or_default();
        repairs.record(recorded);
    }
    let mut all: BTreeMap<String, Remembered> = BTreeMap::new();
    for repair in runs.values().flat_map(Repairs::all) {
        let proposed = &repair.proposed;
        let by_person = repair.source == Some(ApprovalSource::Human);
        let was_run = matches!(
            repair.state,
            RepairState::Worked | RepairState::Failed | RepairState::Executed
        );
        if proposed.fingerprint != fingerprint || !by_person || !was_run {
            continue;
        }
        let one = all
            .entry(proposed.command.clone())
            .or_insert_with(|| Remembered {
                proposed: proposed.clone(),
                worked: 0,
                of: 0,
            });
        one.of += 1;
        one.worked += u32::from(repair.state == RepairState::Worked);
    }
    let mut helped: Vec<_> = all.into_values().filter(|one| one.worked > 0).collect();
    helped.sort_by_key(|one| std::cmp::Reverse((one.worked * 100 / one.of.max(1), one.worked)));
    Ok(helped)
}
