//! The notification hook: notifications are computed before events are written, and written with them.

use unstuck_core::views::RunProjection;
use unstuck_core::{Event, EventRecord, Timestamp};
use unstuck_store::{NewOutboxMessage, RunEventBatch, Store, StoreError};

/// Builds the notifications about events; they are sent elsewhere.
pub trait NotificationBuilder: Send + Sync {
    /// Returns the notifications about events that are about to be written; `run` is the view before these events.
    fn notifications_for(
        &self,
        run: &RunProjection,
        events: &[Event],
        at: Timestamp,
    ) -> Vec<NewOutboxMessage>;
}

/// Writes events of runs that other processes may supervise, with their notifications.
#[derive(Clone, Copy)]
pub struct NotifyingEventWriter<'a> {
    /// The store.
    pub store: &'a Store,
    /// Computes the notifications; `None` if none are sent.
    pub notifier: Option<&'a dyn NotificationBuilder>,
}

impl NotifyingEventWriter<'_> {
    /// Writes events together with their notifications.
    pub async fn append(&self, append: RunEventBatch) -> Result<Vec<EventRecord>, StoreError> {
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
