//! The state of each session after each event, for whoever reads the log in order.

use std::collections::HashMap;

use unstuck_core::episode::{RunFold, SessionStatus};
use unstuck_core::event::{Recorded, RunId};
use unstuck_store::{Store, StoreError};

/// So many runs are followed at the same time; of more, those that were quiet for longest are folded anew.
const MOST: usize = 256;

/// The runs that a reader of the log has come across, as far as it has read.
#[derive(Debug, Default)]
pub(crate) struct States {
    runs: HashMap<RunId, Followed>,
    clock: u64,
}

#[derive(Debug)]
struct Followed {
    fold: RunFold,
    seq: u64,
    used: u64,
}

impl States {
    /// The state of the session that an event belongs to, after it; of its run where it belongs to none. None if the run has no
    /// beginning.
    pub(crate) async fn after(
        &mut self,
        store: &Store,
        recorded: &Recorded,
    ) -> Result<Option<SessionStatus>, StoreError> {
        self.clock += 1;
        let is_next = |one: &Followed| one.seq + 1 == recorded.seq;
        if !self.runs.get(&recorded.run).is_some_and(is_next) {
            let Some(fold) = folded_until(store, recorded).await? else {
                return Ok(None);
            };
            let state = fold.state_of(&recorded.event);
            self.follow(recorded, fold);
            return Ok(Some(state));
        }
        let used = self.clock;
        let Some(run) = self.runs.get_mut(&recorded.run) else {
            return Ok(None);
        };
        run.fold.record(recorded);
        (run.seq, run.used) = (recorded.seq, used);
        Ok(Some(run.fold.state_of(&recorded.event)))
    }

    fn follow(&mut self, recorded: &Recorded, fold: RunFold) {
        if self.runs.len() >= MOST {
            let mut used: Vec<u64> = self.runs.values().map(|one| one.used).collect();
            used.sort_unstable();
            let newer = used[used.len() / 2];
            self.runs.retain(|_, one| one.used >= newer);
        }
        let followed = Followed {
            fold,
            seq: recorded.seq,
            used: self.clock,
        };
        self.runs.insert(recorded.run.clone(), followed);
    }
}

/// A run as it stood after an event; none if it has no beginning.
async fn folded_until(store: &Store, recorded: &Recorded) -> Result<Option<RunFold>, StoreError> {
    if recorded.seq == 1 {
        return Ok(RunFold::begin(recorded));
    }
    let events = store.load(&recorded.run).await?;
    let until = events.partition_point(|one| one.seq <= recorded.seq);
    Ok(RunFold::fold(&events[..until]))
}
