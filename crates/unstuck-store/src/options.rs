//! How a store is used, whatever keeps it.

use std::time::Duration;

use crate::append::Redact;

/// How a store is used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Takes secrets out of every payload before it is written; without it nothing is changed.
    pub redact: Option<Redact>,
    /// How long other processes may keep the store busy; 60 s unless told: to wait is better
    /// than to refuse a command because many others began at once.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            redact: None,
            patience: Duration::from_secs(60),
        }
    }
}
