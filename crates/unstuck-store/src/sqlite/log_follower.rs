//! Follows the log: first the existing rows, then new entries.

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::log_tailer::{self, NewLogEntries};
use super::{SqliteStore, run_and_event_queries};
use crate::error::StoreError;
use crate::query::{EventLogEntry, EventLogOffset};

struct LogFollower {
    store: SqliteStore,
    new_entries: Receiver<Result<NewLogEntries, StoreError>>,
    offset: EventLogOffset,
    /// True if the table may contain entries that were not delivered.
    is_behind: bool,
}

impl SqliteStore {
    pub(crate) async fn follow(
        &self,
        after: Option<EventLogOffset>,
    ) -> Result<impl Stream<Item = Result<Vec<EventLogEntry>, StoreError>> + Send + use<>, StoreError>
    {
        // Subscribe first, so that entries written while the table is read are not missed.
        let news = self.state.tailer.subscribe()?;
        let last = match after {
            Some(after) => after,
            None => self.read(run_and_event_queries::newest_offset).await?,
        };
        let follower = LogFollower {
            store: self.clone(),
            new_entries: news,
            offset: last,
            is_behind: after.is_some(),
        };
        Ok(unfold(Some(follower), async |follower| {
            let mut follower = follower?;
            let next = follower.next().await?;
            let goes_on = next.is_ok();
            Some((next, goes_on.then_some(follower)))
        }))
    }
}

impl LogFollower {
    /// Returns the next entries; `None` once the store is closed.
    async fn next(&mut self) -> Option<Result<Vec<EventLogEntry>, StoreError>> {
        loop {
            let events = if self.is_behind {
                self.read_backlog().await
            } else {
                self.next_new_entries().await?
            };
            match events {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    self.offset = events.last().map_or(self.offset, |newest| newest.offset);
                    return Some(Ok(events));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    async fn read_backlog(&mut self) -> Result<Vec<EventLogEntry>, StoreError> {
        let last = self.offset;
        let read = self
            .store
            .read(move |connection| {
                run_and_event_queries::entries_after(connection, last, log_tailer::PAGE_SIZE)
            })
            .await?;
        self.is_behind = read.len() == log_tailer::PAGE_SIZE;
        Ok(read)
    }

    async fn next_new_entries(&mut self) -> Option<Result<Vec<EventLogEntry>, StoreError>> {
        match self.new_entries.recv().await {
            Ok(Ok(news)) if news.after > self.offset => self.is_behind = true,
            Ok(Ok(news)) => {
                let fresh = news.events.iter().filter(|one| one.offset > self.offset);
                return Some(Ok(fresh.cloned().collect()));
            }
            Ok(Err(error)) => return Some(Err(error)),
            Err(RecvError::Lagged(_)) => self.is_behind = true,
            Err(RecvError::Closed) => return None,
        }
        Some(Ok(Vec::new()))
    }
}
