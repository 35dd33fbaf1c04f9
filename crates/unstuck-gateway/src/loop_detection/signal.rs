//! What shows that an agent goes in circles.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In which way an agent goes in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiLoopKind {
    /// The same calls of tools bring the same results again and again.
    RepeatedCall,
    /// The context is shortened and full again at once, or stays too long.
    NoShrink,
    /// Answers in a row had nothing in them.
    EmptyAnswers,
    /// Many requests bring neither a new call nor a new result nor a new text.
    NoProgress,
    /// Many conversations are begun in a short time.
    Storm,
}

impl ApiLoopKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::RepeatedCall,
        Self::NoShrink,
        Self::EmptyAnswers,
        Self::NoProgress,
        Self::Storm,
    ];

    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RepeatedCall => "repeated_call",
            Self::NoShrink => "no_shrink",
            Self::EmptyAnswers => "empty_answers",
            Self::NoProgress => "no_progress",
            Self::Storm => "storm",
        }
    }
}

impl fmt::Display for ApiLoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A sign that an agent goes in circles. It is given when its limit is reached, and again each time that as many more were
/// counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiLoopSignal {
    /// In which way.
    #[serde(rename = "what")]
    pub kind: ApiLoopKind,
    /// How often it was seen.
    pub count: u32,
    /// What was seen, in one sentence for a person.
    pub sentence: String,
}

/// Whether a count is a limit, or a multiple of it. A limit of 0 is off.
pub(super) fn is_due(count: u32, limit: u32) -> bool {
    limit > 0 && count > 0 && count.is_multiple_of(limit)
}
