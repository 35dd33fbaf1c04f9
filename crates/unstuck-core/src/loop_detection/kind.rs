//! The ways to be stuck.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In which way an agent is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// It writes the same again and again.
    RepeatingOutput,
    /// It says the same again and again, and does nothing new.
    RepeatingMessage,
    /// It makes the same call again and again, which fails each time in the same way.
    RepeatingAction,
    /// It makes ever other calls that all fail in the same way.
    RepeatingError,
    /// It makes the same call again and again, and learns nothing new from it.
    RepeatingResult,
    /// It waits for an answer that nobody will give.
    WaitingForInput,
    /// It ended with a question instead of the work.
    AsksBack,
    /// It goes in circles, seen from the calls to its API.
    InCircles,
}

impl LoopKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::RepeatingOutput,
        Self::RepeatingMessage,
        Self::RepeatingAction,
        Self::RepeatingError,
        Self::RepeatingResult,
        Self::WaitingForInput,
        Self::AsksBack,
        Self::InCircles,
    ];

    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RepeatingOutput => "repeating_output",
            Self::RepeatingMessage => "repeating_message",
            Self::RepeatingAction => "repeating_action",
            Self::RepeatingError => "repeating_error",
            Self::RepeatingResult => "repeating_result",
            Self::WaitingForInput => "waiting_for_input",
            Self::AsksBack => "asks_back",
            Self::InCircles => "in_circles",
        }
    }
}

impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
