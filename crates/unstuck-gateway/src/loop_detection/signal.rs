//! Signals of a looping agent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of an agent's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiLoopKind {
    /// The same tool calls bring the same results repeatedly.
    RepeatedCall,
    /// The context is shortened and soon full again, or stays too long.
    #[serde(alias = "no_shrink")]
    FailedCompactions,
    /// Consecutive responses were empty.
    #[serde(alias = "empty_answers")]
    EmptyResponses,
    /// Many requests bring no new call, result or text.
    NoProgress,
    /// Many conversations begin in a short time.
    #[serde(alias = "storm")]
    ConversationStorm,
}

impl ApiLoopKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::RepeatedCall,
        Self::FailedCompactions,
        Self::EmptyResponses,
        Self::NoProgress,
        Self::ConversationStorm,
    ];

    /// Returns the name used on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RepeatedCall => "repeated_call",
            Self::FailedCompactions => "failed_compactions",
            Self::EmptyResponses => "empty_responses",
            Self::NoProgress => "no_progress",
            Self::ConversationStorm => "conversation_storm",
        }
    }
}

impl fmt::Display for ApiLoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A signal that an agent is stuck in a loop. It is raised when its limit is reached, and again at each multiple of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiLoopSignal {
    /// The kind of loop.
    pub kind: ApiLoopKind,
    /// The number of times it was seen.
    pub count: u32,
    /// A description in one sentence for a human.
    pub sentence: String,
}

/// Returns true if a count is a multiple of the limit. A limit of 0 is off.
pub(super) fn is_due(count: u32, limit: u32) -> bool {
    limit > 0 && count > 0 && count.is_multiple_of(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_wire_names_and_old_ones_are_read() {
        for kind in ApiLoopKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for (old, kind) in [
            ("no_shrink", ApiLoopKind::FailedCompactions),
            ("empty_answers", ApiLoopKind::EmptyResponses),
            ("storm", ApiLoopKind::ConversationStorm),
        ] {
            let read: ApiLoopKind = serde_json::from_value(old.into()).unwrap();
            assert_eq!(read, kind);
        }
    }
}
