//! Money on the wire.

pub use unstuck_core::money::round_usd;

/// What something cost, where a part of it may be unknown; none where nothing of it is known.
pub(super) fn known_cost(usd: f64, unpriced: u64) -> Option<f64> {
    unstuck_core::money::known_cost(usd, unpriced).map(round_usd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_no_dust() {
        assert_eq!(round_usd(0.1 + 0.02), 0.12);
        assert_eq!(round_usd(0.000_001), 0.000_001);
    }

    #[test]
    fn what_is_unknown_is_not_nothing() {
        assert_eq!(known_cost(0.0, 0), Some(0.0));
        assert_eq!(known_cost(0.0, 3), None);
        assert_eq!(known_cost(0.5, 3), Some(0.5));
    }
}
