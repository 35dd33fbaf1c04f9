//! Chance that can be repeated: each draw depends on a seed and on what it is for, not on the draws before it.

/// Draws for one request: the same seed and number give the same ones, whatever other requests do meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRng {
    state: u64,
}

/// What a draw decides.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DrawPurpose {
    /// Whether the request fails.
    WhetherFails = 1,
    /// Which fault it meets.
    Fault = 2,
    /// How long the first byte takes.
    FirstByte = 3,
    /// How long each further piece takes.
    Between = 4,
    /// How long the work itself takes.
    Service = 5,
}

impl RequestRng {
    /// The chance of the request with this number.
    pub(crate) fn for_request(seed: u64, number: u64) -> Self {
        Self {
            state: splitmix(seed ^ splitmix(number)),
        }
    }

    /// Evenly from 0 to below 1.
    pub(crate) fn draw(self, purpose: DrawPurpose, index: u64) -> f64 {
        let bits = splitmix(
            self.state
                .wrapping_add(splitmix(purpose as u64))
                .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        // 53 bits are what the number can hold.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From the bell curve around 0 with a spread of 1.
    pub(crate) fn draw_normal(self, purpose: DrawPurpose, index: u64) -> f64 {
        let (one, two) = (
            self.draw(purpose, index.wrapping_mul(2)),
            self.draw(purpose, index.wrapping_mul(2).wrapping_add(1)),
        );
        (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }
}

/// The finishing step of SplitMix64: every bit of the number reaches every bit of the result.
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
    fn the_same_seed_and_number_draw_the_same_and_others_do_not() {
        let draw =
            |seed, number| RequestRng::for_request(seed, number).draw(DrawPurpose::WhetherFails, 0);
        assert_eq!(draw(7, 1).to_bits(), draw(7, 1).to_bits());
        assert_ne!(draw(7, 1).to_bits(), draw(7, 2).to_bits());
        assert_ne!(draw(7, 1).to_bits(), draw(8, 1).to_bits());
    }

    #[test]
    fn a_share_of_the_draws_is_below_that_share() {
        let below = |share| {
            (0..10_000)
                .filter(|number| {
                    RequestRng::for_request(1, *number).draw(DrawPurpose::WhetherFails, 0) < share
                })
                .count()
        };
        assert!((1_850..2_150).contains(&below(0.2)), "{}", below(0.2));
        assert_eq!((below(0.0), below(1.0)), (0, 10_000));
    }
}
