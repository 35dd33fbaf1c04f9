//! Store options.

use std::time::Duration;

use crate::append_request::EventPayloadRedactor;

/// Options for opening a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The function that removes secrets from payloads before they are written; `None` leaves payloads unchanged.
    pub redact: Option<EventPayloadRedactor>,
    /// The time to wait while other processes keep the store busy; 60 s by default: waiting is better than failing a
    /// command because many others started at once.
    pub busy_timeout: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            redact: None,
            busy_timeout: Duration::from_secs(60),
        }
    }
}
