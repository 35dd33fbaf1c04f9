//! Stopping a run over REST: the same as `unstuck stop`.

use unstuck_core::event::RunId;
use unstuck_web::deeds::DeedError;

use super::Doer;
use crate::stopping::{self, StopError};

/// Tells the process that supervises a run to stop.
pub(super) async fn stop(doer: &Doer, run: RunId) -> Result<(), DeedError> {
    doer.0.only_for_people()?;
    let told = stopping::stop(&doer.0.store, &doer.0.location, &run).await;
    told.map(drop).map_err(|error| match error {
        StopError::Store(error) => error.into(),
        StopError::Signal { .. } => DeedError::Unavailable(error.to_string()),
        other => DeedError::Conflict(other.to_string()),
    })
}
