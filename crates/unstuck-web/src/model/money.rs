//! Money on the wire.

/// An amount of money without the dust of binary fractions.
pub fn rounded(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_no_dust() {
        assert_eq!(rounded(0.1 + 0.02), 0.12);
        assert_eq!(rounded(0.000_001), 0.000_001);
    }
}
