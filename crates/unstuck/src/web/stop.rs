//! Stopping a run over REST: the same as `unstuck stop`.

use unstuck_core::event::RunId;
use unstuck_web::commands::WebCommandError;

use super::Doer;
use crate::run_stop::{self, StopError};

/// Tells the supervising process of a run to stop.
pub(super) async fn stop_run(doer: &Doer, run: RunId) -> Result<(), WebCommandError> {
    doer.0.refuse_agents()?;
    let told = run_stop::stop_run(&doer.0.store, &doer.0.location, &run).await;
    told.map(drop).map_err(|error| match error {
        StopError::Store(error) => error.into(),
        StopError::Signal { .. } => WebCommandError::Unavailable(error.to_string()),
        other => WebCommandError::Conflict(other.to_string()),
    })
}
