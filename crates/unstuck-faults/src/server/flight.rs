//! A request from its arrival to the end of its answer.

use std::sync::Arc;

use super::gate::Pass;
use super::locked;
use super::state::State;

/// A request that is under way; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    state: Arc<State>,
    /// Its place among those that are worked on.
    pass: Option<Pass>,
}

impl Flight {
    /// Counts a request that has just come in.
    pub(super) fn begin(state: &Arc<State>, path: &str) -> Self {
        locked(&state.tally).began(path, state.second());
        Self {
            state: Arc::clone(state),
            pass: None,
        }
    }

    /// Keeps the place until the answer has ended.
    pub(super) fn hold(&mut self, pass: Pass) {
        self.pass = Some(pass);
    }

    /// The client did not wait for the end.
    pub(super) fn abandoned(&self) {
        locked(&self.state.tally).abandoned();
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        locked(&self.state.tally).ended();
    }
}
