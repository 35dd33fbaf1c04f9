//! A request from its arrival to the end of its answer.

use std::sync::Arc;

use super::capacity::CapacityPermit;
use super::lock;
use super::state::ServerState;

/// A request that is under way; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct InFlightRequest {
    state: Arc<ServerState>,
    /// Its place among those that are worked on.
    permit: Option<CapacityPermit>,
}

impl InFlightRequest {
    /// Counts a request that has just come in.
    pub(super) fn begin(state: &Arc<ServerState>, path: &str) -> Self {
        lock(&state.tally).count_request(path, state.uptime_seconds());
        Self {
            state: Arc::clone(state),
            permit: None,
        }
    }

    /// Keeps the place until the answer has ended.
    pub(super) fn hold_permit(&mut self, pass: CapacityPermit) {
        self.permit = Some(pass);
    }

    /// The client did not wait for the end.
    pub(super) fn mark_abandoned(&self) {
        lock(&self.state.tally).count_abandoned();
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        lock(&self.state.tally).count_end();
    }
}
