//! The events that users are notified about.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An event that users are notified about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationEvent {
    /// Human input is needed.
    Escalation,
    /// A request was answered.
    Resolved,
    /// A run recovered from a failure.
    Recovered,
    /// A run finished.
    RunFinished,
}

impl NotificationEvent {
    /// All events.
    pub const ALL: [Self; 4] = [
        Self::Escalation,
        Self::Resolved,
        Self::Recovered,
        Self::RunFinished,
    ];

    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Escalation => "escalation",
            Self::Resolved => "resolved",
            Self::Recovered => "recovered",
            Self::RunFinished => "run_finished",
        }
    }
}

impl fmt::Display for NotificationEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
