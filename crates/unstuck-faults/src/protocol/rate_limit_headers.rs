//! Rate limit headers of each provider: the remaining limits of a key.

use std::time::Duration;

use unstuck_core::Timestamp;

use super::Protocol;
use super::retry_after::{Headers, go_duration, rfc3339};

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitUnit {
    Requests,
    Tokens,
}

/// The remainder of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemainingLimit {
    pub(crate) limit: u32,
    pub(crate) remaining: u64,
    /// Time until the limit is fully refilled.
    pub(crate) reset_in: Duration,
}

/// The remainders of all limits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateLimitStatus {
    pub(crate) now: Timestamp,
    pub(crate) requests: Option<RemainingLimit>,
    pub(crate) tokens: Option<RemainingLimit>,
}

/// A request that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverLimit {
    pub(crate) unit: LimitUnit,
    pub(crate) limit: u32,
    pub(crate) used: u64,
    pub(crate) requested: u64,
    /// Time until it fits, or `None` if it never does.
    pub(crate) wait: Option<Duration>,
}

impl RateLimitStatus {
    /// Returns the rate limit headers; Gemini has none.
    pub(crate) fn headers(&self, protocol: Protocol) -> Headers {
        let mut headers = Vec::new();
        let both = [(self.requests, &REQUESTS), (self.tokens, &TOKENS)];
        for (left, names) in both {
            let Some(left) = left else { continue };
            match protocol {
                Protocol::Anthropic => {
                    let reset = rfc3339(self.now.after(left.reset_in));
                    headers.extend(limit_headers(names.anthropic, left, &reset));
                }
                Protocol::Responses | Protocol::Chat => {
                    headers.extend(limit_headers(
                        names.openai,
                        left,
                        &go_duration(left.reset_in),
                    ));
                }
                Protocol::Gemini => {}
            }
        }
        headers
    }
}

fn limit_headers(
    names: [&'static str; 3],
    left: RemainingLimit,
    reset: &str,
) -> [(&'static str, String); 3] {
    let [limit, remaining, full] = names;
    [
        (limit, left.limit.to_string()),
        (remaining, left.remaining.to_string()),
        (full, reset.to_owned()),
    ]
}

/// The header names of a limit, its remainder and its reset.
struct HeaderNames {
    anthropic: [&'static str; 3],
    openai: [&'static str; 3],
}

const REQUESTS: HeaderNames = HeaderNames {
    anthropic: [
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ],
    openai: [
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ],
};

const TOKENS: HeaderNames = HeaderNames {
    anthropic: [
        "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ],
    openai: [
        "x-ratelimit-limit-tokens",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
    ],
};
