//! A substitute store, for a command that must not wait until the usual store is writable.
//!
//! There is one per usual store, so that a machine with a read-only home directory still has a history.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use unstuck_core::RunId;
use unstuck_run::runner::SessionReporter;
use unstuck_store::{RunEventBatch, RunFilter, Store, StoreError, StoreLocation, StoreOptions};

use crate::event_spill;

/// A store whose runs are copied to the usual store when that is writable again.
#[derive(Debug)]
pub(super) struct SubstituteStore {
    folder: PathBuf,
    location: StoreLocation,
    original: StoreLocation,
}

impl SubstituteStore {
    /// Creates one, in memory-backed storage if possible, and prints a warning; returns the error of the usual store if
    /// no location has space.
    pub(super) fn create(
        usual: &StoreLocation,
        error: StoreError,
        reporter: &mut dyn SessionReporter,
    ) -> Result<Self> {
        let Some(folder) = event_spill::substitute_dir(usual) else {
            return Err(crate::store::with_hint(error));
        };
        let location = StoreLocation::file(folder.join(event_spill::SUBSTITUTE_NAME));
        reporter.warn(&format!(
            "{error}; running the command anyway and recording it in {location} for now, without repairs and model switches; \
             specify another store with --store FILE or UNSTUCK_STORE"
        ));
        Ok(Self {
            folder,
            location,
            original: usual.clone(),
        })
    }

    /// Returns its location.
    pub(super) fn location(&self) -> &StoreLocation {
        &self.location
    }

    /// Copies the run to the usual store if that is writable by now, and reports the location.
    pub(super) fn copy_to_original(self, run: &RunId, reporter: &mut dyn SessionReporter) {
        let copied = crate::async_runtime::block_on(self.copy(run));
        match copied {
            Ok(is_used) => {
                reporter.warn(&format!(
                    "the store is writable again; recorded run {}",
                    run.short()
                ));
                if !is_used {
                    // The remaining files are in memory or in a temporary directory.
                    let _ = fs::remove_dir_all(&self.folder);
                }
            }
            Err(error) => reporter.warn(&format!(
                "the store is still not writable ({error:#}); an unstuck command will record the run as soon as it is. Show the run with: unstuck show {} --store {}",
                run.short(),
                self.location
            )),
        }
    }

    /// Copies a run to the usual store; returns true if this store is still needed for other runs.
    async fn copy(&self, run: &RunId) -> Result<bool> {
        let from = Store::open(&self.location, StoreOptions::default()).await?;
        let events = from.load(run).await?;
        let is_used = from.runs(&RunFilter::default()).await?.len() > 1;
        from.close().await?;
        let to = Store::open(&self.original, StoreOptions::default()).await?;
        for moment in events.chunk_by(|one, next| one.at == next.at) {
            if let Some(first) = moment.first() {
                let events = moment.iter().map(|recorded| recorded.event.clone());
                to.append(RunEventBatch::new(run.clone(), first.at, events))
                    .await?;
            }
        }
        to.close().await?;
        Ok(is_used)
    }
}
