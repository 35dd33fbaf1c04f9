//! The four levels of recovery.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The level of recovery at which a failure is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryLevel {
    /// Level 1: an unchanged retry after a wait.
    Same,
    /// Level 2: the next strategy of the kind's chain.
    Alternative,
    /// Level 3: a retry with a human's message as new context; only a human chooses it.
    Clarify,
    /// Level 4: an escalation to a human.
    Escalate,
}

impl RecoveryLevel {
    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Alternative => "alternative",
            Self::Clarify => "clarify",
            Self::Escalate => "escalate",
        }
    }
}

impl fmt::Display for RecoveryLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S0-01: exactly four levels with these names, which are stored in the event log.
    #[test]
    fn four_levels_have_stable_names() {
        let names = [
            RecoveryLevel::Same,
            RecoveryLevel::Alternative,
            RecoveryLevel::Clarify,
            RecoveryLevel::Escalate,
        ]
        .map(|level| serde_json::to_value(level).unwrap());
        assert_eq!(names, ["same", "alternative", "clarify", "escalate"]);
    }
}
