//! The four levels of recovery.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The level of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Level 1: an unchanged retry after a wait.
    Same,
    /// Level 2: the next strategy of the kind's chain.
    Alternative,
    /// Level 3: a retry with a human's message as new context; only a human chooses it.
    Clarify,
    /// Level 4: an escalation to a human.
    Escalate,
}

impl Level {
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

impl fmt::Display for Level {
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
            Level::Same,
            Level::Alternative,
            Level::Clarify,
            Level::Escalate,
        ]
        .map(|level| serde_json::to_value(level).unwrap());
        assert_eq!(names, ["same", "alternative", "clarify", "escalate"]);
    }
}
