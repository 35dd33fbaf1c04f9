//! The state of each session after each event, for whoever reads the log in order.

use std::collections::HashMap;

use unstuck_core::event::{EventRecord, RunId};
use unstuck_core::views::{RunProjection, SessionStatus};
use unstuck_store::{Store, StoreError};

/// So many runs are followed at the same time; of more, those that were quiet for longest are folded anew.
const MAX_TRACKED_RUNS: usize = 256;

/// The runs that a reader of the log has come across, as far as it has read.
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
    /// The state of the session that an event belongs to, after it; of its run where it belongs to none. None if the run has no
    /// beginning.
    pub(crate) async fn state_after(
        &mut self,
        store: &Store,
        recorded: &EventRecord,
    ) -> Result<Option<SessionStatus>, StoreError> {
        self.clock += 1;
        let is_next = |one: &TrackedRun| one.seq + 1 == recorded.seq;
        if !self.runs.get(&recorded.run).is_some_and(is_next) {
            let Some(fold) = fold_until(store, recorded).await? else {
                return Ok(None);
            };
            let state = fold.status_of(&recorded.event);
            self.track_run(recorded, fold);
            return Ok(Some(state));
        }
        let used = self.clock;
        let Some(run) = self.runs.get_mut(&recorded.run) else {
            return Ok(None);
        };
        run.fold.apply(recorded);
        (run.seq, run.used) = (recorded.seq, used);
        Ok(Some(run.fold.status_of(&recorded.event)))
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

/// A run as it stood after an event; none if it has no beginning.
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
