//! Ensures that each run is resumed by only one process of this server at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unstuck_core::RunId;

/// Runs that are being resumed.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveResumes(Arc<Mutex<HashSet<RunId>>>);

impl ActiveResumes {
    /// Marks a run as being resumed; none if it already is.
    pub(super) fn begin(&self, run: &RunId) -> Option<ResumeGuard> {
        let is_new = self.lock().insert(run.clone());
        is_new.then(|| ResumeGuard {
            active: self.clone(),
            run: run.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a run as being resumed until dropped.
#[derive(Debug)]
pub(super) struct ResumeGuard {
    active: ActiveResumes,
    run: RunId,
}

impl Drop for ResumeGuard {
    fn drop(&mut self) {
        self.active.lock().remove(&self.run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_is_resumed_by_one_process_at_a_time() {
        let (resuming, run) = (ActiveResumes::default(), RunId::new("r"));
        let first = resuming.begin(&run);
        assert!(first.is_some());
        assert!(resuming.begin(&run).is_none());
        assert!(resuming.begin(&RunId::new("other")).is_some());
        drop(first);
        assert!(resuming.begin(&run).is_some());
    }
}
