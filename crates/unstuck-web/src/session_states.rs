//! Tracks the state of each session while the log is read in order.

use std::collections::HashMap;

use unstuck_core::event::{EventRecord, RunId};
use unstuck_core::views::{RunProjection, SessionStatusSummary};
use unstuck_store::{Store, StoreError};

/// Maximum number of tracked runs; beyond it, the runs idle for longest are folded again when needed.
const MAX_TRACKED_RUNS: usize = 256;

/// Tracks the states of sessions for a reader of the log, up to its position.
#[derive(Debug, Default)]
pub(crate) struct SessionStateTracker {
    runs: HashMap<RunId, TrackedRun>,
    clock: u64,
}

#[derive(Debug)]
struct TrackedRun {
    fold: RunProjection,
    seq: u64,
    used: u64,
}

impl SessionStateTracker {
    /// Returns the state of the event's session after the event, or of its run if it belongs to no session. Returns
    /// `None` if the run has no start event.
    pub(crate) async fn state_after(
        &mut self,
        store: &Store,
        recorded: &EventRecord,
    ) -> Result<Option<SessionStatusSummary>, StoreError> {
        self.clock += 1;
        let is_next = |one: &TrackedRun| one.seq + 1 == recorded.seq;
        if !self.runs.get(&recorded.run).is_some_and(is_next) {
            let Some(fold) = fold_until(store, recorded).await? else {
                return Ok(None);
            };
            let state = fold.event_status(&recorded.event);
            self.track_run(recorded, fold);
            return Ok(Some(state));
        }
        let used = self.clock;
        let Some(run) = self.runs.get_mut(&recorded.run) else {
            return Ok(None);
        };
        run.fold.apply(recorded);
        (run.seq, run.used) = (recorded.seq, used);
        Ok(Some(run.fold.event_status(&recorded.event)))
    }

    fn track_run(&mut self, recorded: &EventRecord, fold: RunProjection) {
        if self.runs.len() >= MAX_TRACKED_RUNS {
            let mut used: Vec<u64> = self.runs.values().map(|one| one.used).collect();
            used.sort_unstable();
            let newer = used[used.len() / 2];
            self.runs.retain(|_, one| one.used >= newer);
        }
        let followed = TrackedRun {
            fold,
            seq: recorded.seq,
            used: self.clock,
        };
        self.runs.insert(recorded.run.clone(), followed);
    }
}

/// Folds a run up to an event; returns `None` if it has no start event.
async fn fold_until(
    store: &Store,
    recorded: &EventRecord,
) -> Result<Option<RunProjection>, StoreError> {
    if recorded.seq == 1 {
        return Ok(RunProjection::from_first_event(recorded));
    }
    let events = store.load(&recorded.run).await?;
    let until = events.partition_point(|one| one.seq <= recorded.seq);
    Ok(RunProjection::from_events(&events[..until]))
}
