//! What people are told about a run: asked for before events are written, and written with them.

use unstuck_core::episode::RunFold;
use unstuck_core::{Event, Recorded, Timestamp};
use unstuck_store::{Append, Outgoing, Store, StoreError};

/// Knows what people are to be told.
pub trait Announcer: Send + Sync {
    /// The messages about events that are about to be written; `run` is what was known before them.
    fn announce(&self, run: &RunFold, events: &[Event], at: Timestamp) -> Vec<Outgoing>;
}

/// Writes events of runs that somebody else may drive, and has people told of them.
#[derive(Clone, Copy)]
pub struct Scribe<'a> {
    /// Where they are written.
    pub store: &'a Store,
    /// Knows what people are to be told; none where nobody is.
    pub announcer: Option<&'a dyn Announcer>,
}

impl Scribe<'_> {
    /// Writes events, with the messages about them.
    pub async fn append(&self, append: Append) -> Result<Vec<Recorded>, StoreError> {
        let Some(announcer) = self.announcer else {
            return self.store.append(append).await;
        };
        let known = self.store.load(&append.run).await?;
        let told = RunFold::fold(&known)
            .map(|run| announcer.announce(&run, &append.events, append.at))
            .unwrap_or_default();
        self.store.append(append.telling(told)).await
    }
}
