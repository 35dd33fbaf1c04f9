//! The lines of `usage.jsonl` about repairs: an event and the totals of the run.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::command_policy::RepairCategory;
use unstuck_core::event::{ApprovalSource, RepairProposed};
use unstuck_core::session_state::{RepairRecord, RepairStates, RepairStatus};
use unstuck_core::{EventRecord, Timestamp};

/// An event of a repair, with the totals of the run.
#[derive(Debug, Serialize)]
pub(super) struct RepairCountsLine<'a> {
    timestamp: Timestamp,
    event: &'a str,
    recovery: RepairCounts,
}

/// The totals of all repairs in a run.
#[derive(Debug, PartialEq, Serialize)]
struct RepairCounts {
    proposals: usize,
    auto_executed: usize,
    auto_worked: usize,
    /// Success rate of the finished automatic repairs, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_success_rate: Option<f64>,
    escalations: usize,
    categories: BTreeMap<RepairCategory, usize>,
    /// Average time from the proposal until the failed command worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_time_to_resolution_ms: Option<u64>,
}

impl<'a> RepairCountsLine<'a> {
    pub(super) fn from_event(recorded: &'a EventRecord, repairs: &RepairStates) -> Self {
        Self {
            timestamp: recorded.at,
            event: recorded.event.name(),
            recovery: RepairCounts::from_repairs(repairs),
        }
    }
}

impl RepairCounts {
    fn from_repairs(repairs: &RepairStates) -> Self {
        let all = repairs.all();
        let count = |is_meant: &dyn Fn(&RepairRecord) -> bool| {
            all.iter().filter(|one| is_meant(one)).count()
        };
        let is_auto = |one: &RepairRecord| one.source == Some(ApprovalSource::Auto);
        let worked = |one: &RepairRecord| one.status == RepairStatus::Helped;
        let auto_worked = count(&|one| is_auto(one) && worked(one));
        let settled = count(&|one| is_auto(one) && one.settled_at.is_some());
        let mut categories = BTreeMap::new();
        for RepairProposed { category, .. } in all.iter().map(|one| &one.proposed) {
            *categories.entry(*category).or_default() += 1;
        }
        let times: Vec<u128> = all
            .iter()
            .filter(|one| worked(one))
            .filter_map(|one| Some(one.settled_at?.since(one.at).as_millis()))
            .collect();
        let mean = times.iter().sum::<u128>().checked_div(times.len() as u128);
        Self {
            proposals: all.len(),
            auto_executed: count(&|one| is_auto(one) && one.exit_code.is_some()),
            auto_worked,
            #[expect(clippy::cast_precision_loss, reason = "there are only a few")]
            auto_success_rate: (settled > 0).then(|| auto_worked as f64 / settled as f64),
            escalations: count(&|one| one.was_escalated),
            categories,
            mean_time_to_resolution_ms: mean.and_then(|mean| u64::try_from(mean).ok()),
        }
    }
}
