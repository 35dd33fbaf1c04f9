//! Reproducible randomness: each draw depends on a seed and its purpose, not on the draws before it.

/// The random draws of one request: the same seed and number give the same ones, whatever other requests do meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRng {
    state: u64,
}

/// The purpose of a draw.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RandomDrawPurpose {
    /// Decides if the request fails.
    WhetherFails = 1,
    /// Selects the fault.
    Fault = 2,
    /// Delay of the first byte.
    FirstByte = 3,
    /// Delay between pieces.
    Between = 4,
    /// Duration of the work itself.
    Service = 5,
}

impl RequestRng {
    /// Returns the draws of the request with this number.
    pub(crate) fn for_request(seed: u64, number: u64) -> Self {
        Self {
            state: splitmix(seed ^ splitmix(number)),
        }
    }

    /// Returns a uniform draw from 0 to below 1.
    pub(crate) fn draw(self, purpose: RandomDrawPurpose, index: u64) -> f64 {
        let bits = splitmix(
            self.state
                .wrapping_add(splitmix(purpose as u64))
                .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        // A float holds 53 bits.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a draw from the standard normal distribution.
    pub(crate) fn draw_normal(self, purpose: RandomDrawPurpose, index: u64) -> f64 {
        let (one, two) = (
            self.draw(purpose, index.wrapping_mul(2)),
            self.draw(purpose, index.wrapping_mul(2).wrapping_add(1)),
        );
        (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }
}

/// The finalizer of SplitMix64: every bit of the number affects every bit of the result.
fn splitmix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_only_on_seed_and_request_number() {
        let draw = |seed, number| {
            RequestRng::for_request(seed, number).draw(RandomDrawPurpose::WhetherFails, 0)
        };
        assert_eq!(draw(7, 1).to_bits(), draw(7, 1).to_bits());
        assert_ne!(draw(7, 1).to_bits(), draw(7, 2).to_bits());
        assert_ne!(draw(7, 1).to_bits(), draw(8, 1).to_bits());
    }

    #[test]
    fn draws_are_uniformly_distributed() {
        let below = |share| {
            (0..10_000)
                .filter(|number| {
                    RequestRng::for_request(1, *number).draw(RandomDrawPurpose::WhetherFails, 0)
                        < share
                })
                .count()
        };
        assert!((1_850..2_150).contains(&below(0.2)), "{}", below(0.2));
        assert_eq!((below(0.0), below(1.0)), (0, 10_000));
    }
}
