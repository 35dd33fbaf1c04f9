//! Sources of a stated wait.

use serde::{Deserialize, Serialize};

/// The source of a stated wait; a later variant is a better source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfterSource {
    /// Not stated: the policy's backoff, or knowledge about the service.
    Guess,
    /// A text that a program printed.
    Screen,
    /// A structured event of an agent.
    Event,
    /// The body of an API response.
    Body,
    /// A header of an API response.
    Header,
}

impl RetryAfterSource {
    /// All sources.
    pub const ALL: [Self; 5] = [
        Self::Guess,
        Self::Screen,
        Self::Event,
        Self::Body,
        Self::Header,
    ];

    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guess => "guess",
            Self::Screen => "screen",
            Self::Event => "event",
            Self::Body => "body",
            Self::Header => "header",
        }
    }
}
