//! The runs that processes take up which were started here: each by one at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unstuck_core::RunId;

/// The runs that are being taken up.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveResumes(Arc<Mutex<HashSet<RunId>>>);

impl ActiveResumes {
    /// Takes a run up; none while somebody else does.
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

/// A run that is being taken up, for as long as this is kept.
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
    fn a_run_is_taken_up_by_one_at_a_time() {
        let (resuming, run) = (ActiveResumes::default(), RunId::new("r"));
        let first = resuming.begin(&run);
        assert!(first.is_some());
        assert!(resuming.begin(&run).is_none());
        assert!(resuming.begin(&RunId::new("other")).is_some());
        drop(first);
        assert!(resuming.begin(&run).is_some());
    }
}
