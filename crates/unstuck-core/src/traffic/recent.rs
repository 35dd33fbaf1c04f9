//! What became of the last calls: whether rate limits are the rule or the exception.

/// So many calls are looked back upon.
const LOOKED_BACK: u32 = 20;
/// So many rate limits among them are an exception.
const RARE: u32 = 2;

/// Which of the last calls met a rate limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Recent {
    /// A bit for each, the newest last.
    limited: u32,
    known: u32,
}

impl Recent {
    pub(super) fn note(&mut self, is_limited: bool) {
        self.limited = (self.limited << 1 | u32::from(is_limited)) & ((1 << LOOKED_BACK) - 1);
        self.known = (self.known + 1).min(LOOKED_BACK);
    }

    /// Whether enough is known, and hardly anybody met one. A limit that all share stops all, and soon shows itself.
    pub(super) fn limits_are_rare(&self) -> bool {
        self.known == LOOKED_BACK && self.limited.count_ones() <= RARE
    }
}
