//! What people are told about a run: asked for before events are written, and written with them.

use unstuck_core::views::RunProjection;
use unstuck_core::{Event, EventRecord, Timestamp};
use unstuck_store::{Append, NewMessage, Store, StoreError};

/// Knows what people are to be told.
pub trait Notifier: Send + Sync {
    /// The messages about events that are about to be written; `run` is what was known before them.
    fn notifications_for(
        &self,
        run: &RunProjection,
        events: &[Event],
        at: Timestamp,
    ) -> Vec<NewMessage>;
}

/// Writes events of runs that somebody else may drive, and has people told of them.
#[derive(Clone, Copy)]
pub struct EventWriter<'a> {
    /// Where they are written.
    pub store: &'a Store,
    /// Knows what people are to be told; none where nobody is.
    pub notifier: Option<&'a dyn Notifier>,
}

impl EventWriter<'_> {
    /// Writes events, with the messages about them.
    pub async fn append(&self, append: Append) -> Result<Vec<EventRecord>, StoreError> {
        let Some(announcer) = self.notifier else {
            return self.store.append(append).await;
        };
        let known = self.store.load(&append.run).await?;
        let told = RunProjection::from_events(&known)
            .map(|run| announcer.notifications_for(&run, &append.events, append.at))
            .unwrap_or_default();
        self.store.append(append.with_messages(told)).await
    }
}
