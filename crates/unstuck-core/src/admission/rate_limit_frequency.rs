//! Counts the rate limits among the latest calls, to tell if they are rare.

/// Number of calls in the history.
const HISTORY_LEN: u32 = 20;
/// Number of rate limits among them that is still rare.
const MAX_RARE_LIMITS: u32 = 2;

/// The latest calls, each marked if it met a rate limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RecentRateLimits {
    /// One bit per call, the newest last.
    limited: u32,
    known: u32,
}

impl RecentRateLimits {
    pub(super) fn record(&mut self, is_limited: bool) {
        self.limited = (self.limited << 1 | u32::from(is_limited)) & ((1 << HISTORY_LEN) - 1);
        self.known = (self.known + 1).min(HISTORY_LEN);
    }

    /// Returns true if enough is known and rate limits are rare. A limit shared by all calls soon shows itself.
    pub(super) fn limits_are_rare(&self) -> bool {
        self.known == HISTORY_LEN && self.limited.count_ones() <= MAX_RARE_LIMITS
    }
}
