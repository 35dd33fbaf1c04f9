//! How a store is used, whatever keeps it.

use std::time::Duration;

use crate::append::Redact;

/// How a store is used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Takes secrets out of every payload before it is written; without it nothing is changed.
    pub redact: Option<Redact>,
    /// How long other processes may keep the store busy; 10 s unless told.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            redact: None,
            patience: Duration::from_secs(10),
        }
    }
}
