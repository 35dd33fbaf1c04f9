//! Cost values on the wire.

pub use unstuck_core::money::round_usd;

/// Returns the known part of a cost, or `None` if none of it is known.
pub(super) fn known_cost(usd: f64, unpriced: u64) -> Option<f64> {
    unstuck_core::money::known_cost(usd, unpriced).map(round_usd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_cost_has_no_floating_point_noise() {
        assert_eq!(round_usd(0.1 + 0.02), 0.12);
        assert_eq!(round_usd(0.000_001), 0.000_001);
    }

    #[test]
    fn unknown_cost_is_null_not_zero() {
        assert_eq!(known_cost(0.0, 0), Some(0.0));
        assert_eq!(known_cost(0.0, 3), None);
        assert_eq!(known_cost(0.5, 3), Some(0.5));
    }
}
