//! The forms in which a refusal states a wait.

use serde::Deserialize;

/// The place and format of a stated wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfterFormat {
    /// `retry-after: 7`; rounded up to whole seconds.
    Seconds,
    /// `retry-after: 1.5`.
    Fractional,
    /// `retry-after: Sun, 06 Nov 1994 08:49:37 GMT`; rounded up to the second.
    HttpDate,
    /// `retry-after-ms: 1500`.
    Millis,
    /// The provider's rate limit headers with a duration: `x-ratelimit-reset-requests: 1m30.5s`.
    Duration,
    /// `x-ratelimit-reset-requests: 7`; rounded up to whole seconds.
    BareSeconds,
    /// `x-ratelimit-reset: 1763000000`.
    EpochSeconds,
    /// `x-ratelimit-reset: 1763000000000`.
    EpochMillis,
    /// Timestamps in RFC 3339: `anthropic-ratelimit-requests-reset` for Anthropic, `x-ratelimit-reset` for others.
    Rfc3339,
    /// Only in the body, in the provider's own way: RetryInfo for Gemini, a sentence for the others.
    Body,
    /// Only a sentence in the message.
    Message,
    /// Not stated.
    None,
}
