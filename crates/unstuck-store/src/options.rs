//! How a store is used, whatever keeps it.

use std::time::Duration;

use crate::append::PayloadRedactor;

/// How a store is used.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Takes secrets out of every payload before it is written; without it nothing is changed.
    pub redact: Option<PayloadRedactor>,
    /// How long other processes may keep the store busy; 60 s unless told: to wait is better
    /// than to refuse a command because many others began at once.
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
