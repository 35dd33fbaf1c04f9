//! Cache of events serialized as JSON, shared by all event streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use unstuck_core::redact::Redactor;
use unstuck_core::views::SessionStatusSummary;
use unstuck_store::EventLogEntry;

use crate::model::EventResponse;

/// Capacity of the cache: enough for the events that occur while a browser reconnects.
const MAX_CACHED_EVENTS: usize = 4096;

/// A cache of the newest serialized events by id.
#[derive(Debug, Default)]
pub(crate) struct EventJsonCache {
    cache: Mutex<HashMap<u64, Arc<str>>>,
}

impl EventJsonCache {
    /// Serializes an event without secrets. Returns `None` if it cannot be serialized.
    pub(crate) fn encode(
        &self,
        placed: &EventLogEntry,
        state: Option<SessionStatusSummary>,
        redactor: &Redactor,
    ) -> Option<Arc<str>> {
        let id = placed.offset.number();
        if let Some(line) = self.lock_cache().get(&id) {
            return Some(Arc::clone(line));
        }
        let mut line =
            serde_json::to_value(EventResponse::from_record(id, &placed.record, state)).ok()?;
        redactor.redact_value(&mut line);
        let line: Arc<str> = line.to_string().into();
        let mut kept = self.lock_cache();
        if kept.len() >= MAX_CACHED_EVENTS {
            kept.retain(|known, _| known + MAX_CACHED_EVENTS as u64 / 2 > id);
        }
        // Reading old events must not evict those that all others wait for.
        if kept.len() < MAX_CACHED_EVENTS {
            kept.insert(id, Arc::clone(&line));
        }
        Some(line)
    }

    fn lock_cache(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<str>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
