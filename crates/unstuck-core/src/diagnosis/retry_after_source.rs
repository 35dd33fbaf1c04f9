//! Where the end of a wait is known from.

use serde::{Deserialize, Serialize};

/// Where the end of a wait is known from; a later variant is a better source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfterSource {
    /// Nothing states it: the policy's backoff, or what is known of the service.
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
    /// Every source.
    pub const ALL: [Self; 5] = [
        Self::Guess,
        Self::Screen,
        Self::Event,
        Self::Body,
        Self::Header,
    ];

    /// The name used on every wire.
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
