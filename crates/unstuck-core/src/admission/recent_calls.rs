//! What became of the last calls: whether rate limits are the rule or the exception.

/// So many calls are looked back upon.
const HISTORY_LEN: u32 = 20;
/// So many rate limits among them are an exception.
const MAX_RARE_LIMITS: u32 = 2;

/// Which of the last calls met a rate limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RecentCalls {
    /// A bit for each, the newest last.
    limited: u32,
    known: u32,
}

impl RecentCalls {
    pub(super) fn record(&mut self, is_limited: bool) {
        self.limited = (self.limited << 1 | u32::from(is_limited)) & ((1 << HISTORY_LEN) - 1);
        self.known = (self.known + 1).min(HISTORY_LEN);
    }

    /// Whether enough is known, and hardly anybody met one. A limit that all share stops all, and soon shows itself.
    pub(super) fn limits_are_rare(&self) -> bool {
        self.known == HISTORY_LEN && self.limited.count_ones() <= MAX_RARE_LIMITS
    }
}
