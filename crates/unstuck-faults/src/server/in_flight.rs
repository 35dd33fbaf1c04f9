//! A request from its arrival to the end of its answer.

use std::sync::Arc;

use super::capacity::CapacityPermit;
use super::lock;
use super::state::ServerState;

/// A request in flight; it ends on drop.
#[derive(Debug)]
pub(super) struct InFlightRequest {
    state: Arc<ServerState>,
    /// Capacity permit of the request.
    permit: Option<CapacityPermit>,
}

impl InFlightRequest {
    /// Counts a new request.
    pub(super) fn begin(state: &Arc<ServerState>, path: &str) -> Self {
        lock(&state.tally).count_request(path, state.uptime_seconds());
        Self {
            state: Arc::clone(state),
            permit: None,
        }
    }

    /// Holds the permit until the answer has ended.
    pub(super) fn hold_permit(&mut self, pass: CapacityPermit) {
        self.permit = Some(pass);
    }

    /// Records that the client did not wait for the end.
    pub(super) fn mark_abandoned(&self) {
        lock(&self.state.tally).count_abandoned();
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        lock(&self.state.tally).count_end();
    }
}
