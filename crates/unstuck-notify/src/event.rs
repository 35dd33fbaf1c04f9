//! What people are told about.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What people are told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationEvent {
    /// A person is asked something.
    Escalation,
    /// A question was answered.
    Resolved,
    /// A failure was recovered from.
    Recovered,
    /// A run ended.
    RunFinished,
}

impl NotificationEvent {
    /// Every occasion.
    pub const ALL: [Self; 4] = [
        Self::Escalation,
        Self::Resolved,
        Self::Recovered,
        Self::RunFinished,
    ];

    /// The name used on every wire.
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
