//! The kinds of loops.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// The agent writes the same output repeatedly.
    RepeatingOutput,
    /// The agent repeats the same message without doing anything new.
    RepeatingMessage,
    /// The agent repeats the same call, which always fails in the same way.
    RepeatingAction,
    /// The agent makes different calls that all fail in the same way.
    RepeatingError,
    /// The agent repeats the same call, which always returns the same result.
    RepeatingResult,
    /// The agent waits for input that nobody will give.
    WaitingForInput,
    /// The agent ended with a question instead of the work.
    AsksBack,
    /// A loop in the calls to the agent's API.
    #[serde(alias = "in_circles")]
    Looping,
}

impl LoopKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::RepeatingOutput,
        Self::RepeatingMessage,
        Self::RepeatingAction,
        Self::RepeatingError,
        Self::RepeatingResult,
        Self::WaitingForInput,
        Self::AsksBack,
        Self::Looping,
    ];

    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RepeatingOutput => "repeating_output",
            Self::RepeatingMessage => "repeating_message",
            Self::RepeatingAction => "repeating_action",
            Self::RepeatingError => "repeating_error",
            Self::RepeatingResult => "repeating_result",
            Self::WaitingForInput => "waiting_for_input",
            Self::AsksBack => "asks_back",
            Self::Looping => "looping",
        }
    }
}

impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_wire_names_and_the_old_one_is_read() {
        for kind in LoopKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        let old: LoopKind = serde_json::from_str(r#""in_circles""#).unwrap();
        assert_eq!(old, LoopKind::Looping);
    }
}
