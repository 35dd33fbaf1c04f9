//! Delays before the next retry.
//!
//! A delay stated by the server takes precedence and is never undercut; only without one the backoff curve applies,
//! bounded by its cap and spread by jitter.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::randomness::{RandomDraw, SeededRng};

/// The growth of delays over retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffCurve {
    /// base × multiplier^(n-1).
    Exponential,
    /// multiplier × n seconds.
    Linear,
    /// The base each time.
    Fixed,
}

/// The spread of delays, so that many sessions do not retry at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Exactly the delay of the curve.
    None,
    /// Uniform between 0 (exclusive) and the delay of the curve.
    Full,
    /// Uniform between half of the delay of the curve and the whole.
    Equal,
    /// Uniform between the base and three times the previous delay.
    Decorrelated,
}

/// The backoff parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The growth of delays.
    pub curve: BackoffCurve,
    /// The spread of delays.
    pub jitter: Jitter,
    /// The first delay, in seconds.
    pub base: f64,
    /// The factor between consecutive delays.
    pub multiplier: f64,
    /// The maximum delay, in seconds.
    pub cap: f64,
}

/// The minimum and maximum added to a stated reset, so that a clock that is slightly fast does not retry too early and
/// waiting sessions do not all wake at once.
const RESET_SKEW: (f64, f64) = (2.0, 30.0);

impl Backoff {
    /// Returns the delay of the curve before the `n`-th retry (from 1), before jitter.
    pub fn curve_delay(&self, n: u32) -> Duration {
        let n = n.max(1);
        let seconds = match self.curve {
            BackoffCurve::Exponential => {
                self.base
                    * self
                        .multiplier
                        .powi(i32::try_from(n - 1).unwrap_or(i32::MAX))
            }
            BackoffCurve::Linear => self.multiplier * f64::from(n),
            BackoffCurve::Fixed => self.base,
        };
        self.capped_seconds(seconds)
    }

    /// Returns the delay before the `n`-th retry, spread by the draw; `previous` is the delay before this one.
    pub fn delay(&self, n: u32, previous: Option<Duration>, draw: RandomDraw) -> Duration {
        let whole = self.curve_delay(n);
        match self.jitter {
            Jitter::None => whole,
            Jitter::Full => whole.mul_f64(draw.fraction()),
            Jitter::Equal => (whole / 2).saturating_add((whole / 2).mul_f64(draw.fraction())),
            Jitter::Decorrelated => {
                let low = self.base.min(self.cap);
                let high = previous.map_or(low, |wait| wait.as_secs_f64() * 3.0);
                self.capped_seconds(low + (high - low).max(0.0) * draw.fraction())
            }
        }
    }

    /// Returns an endless iterator over the delays.
    pub fn delays(self, seed: u64) -> impl Iterator<Item = Duration> {
        let mut dice = SeededRng::seeded(seed);
        let mut previous = None;
        (1..).map(move |n| {
            let wait = self.delay(n, previous, dice.next_draw());
            previous = Some(wait);
            wait
        })
    }

    /// Converts seconds to a duration within the cap; NaN becomes the cap.
    fn capped_seconds(&self, seconds: f64) -> Duration {
        let cap = Duration::try_from_secs_f64(self.cap).unwrap_or(Duration::ZERO);
        Duration::try_from_secs_f64(seconds).map_or(cap, |wait| wait.min(cap))
    }
}

/// Returns the delay until a stated reset: the stated time plus 2 s, and up to 28 s more by the draw.
///
/// The spread is at most a tenth of the delay, so that a short one stays short.
pub fn delay_until_reset(stated: Duration, draw: RandomDraw) -> Duration {
    let (least, most) = RESET_SKEW;
    let spread = (most - least).min(stated.as_secs_f64() / 10.0);
    stated.saturating_add(Duration::from_secs_f64(least + spread * draw.fraction()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn standard() -> Backoff {
        Backoff {
            curve: BackoffCurve::Exponential,
            jitter: Jitter::None,
            base: 1.0,
            multiplier: 2.0,
            cap: 30.0,
        }
    }

    fn first_seconds(backoff: Backoff, count: usize) -> Vec<f64> {
        let waits = backoff.delays(1).take(count);
        waits.map(|wait| wait.as_secs_f64()).collect()
    }

    /// S4-02, S4-24: 1, 2, 4, 8 s and never more than 30 s.
    #[test]
    fn exponential_delays_double_up_to_the_cap() {
        let waits = first_seconds(standard(), 7);
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
    }

    /// S1-27: multiplier × n seconds.
    #[test]
    fn linear_delays_are_the_multiplier_times_the_retry_number() {
        let linear = Backoff {
            curve: BackoffCurve::Linear,
            multiplier: 1.5,
            ..standard()
        };
        assert_eq!(first_seconds(linear, 3), [1.5, 3.0, 4.5]);
    }

    #[test]
    fn fixed_delays_stay_the_same() {
        let fixed = Backoff {
            curve: BackoffCurve::Fixed,
            base: 7.0,
            ..standard()
        };
        assert_eq!(first_seconds(fixed, 3), [7.0, 7.0, 7.0]);
    }

    #[test]
    fn a_stated_reset_is_never_undercut_and_is_spread_by_seconds_only() {
        let day = Duration::from_secs(86_400);
        assert!(delay_until_reset(day, RandomDraw(0)) >= day + Duration::from_secs(2));
        assert!(delay_until_reset(day, RandomDraw(u64::MAX)) <= day + Duration::from_secs(30));
        let short = Duration::from_secs(20);
        assert!(delay_until_reset(short, RandomDraw(u64::MAX)) <= Duration::from_secs(24));
    }

    proptest! {
        #[test]
        fn no_delay_exceeds_the_cap_and_full_jitter_is_never_longer_than_the_curve(
            curve in prop_oneof![Just(BackoffCurve::Exponential), Just(BackoffCurve::Linear), Just(BackoffCurve::Fixed)],
            jitter in prop_oneof![
                Just(Jitter::None), Just(Jitter::Full), Just(Jitter::Equal), Just(Jitter::Decorrelated),
            ],
            base in 0.0..1e6_f64, multiplier in 0.0..1e6_f64, cap in 0.0..1e6_f64,
            n in any::<u32>(), previous in proptest::option::of(0_u64..1_000_000), draw in any::<u64>(),
        ) {
            let backoff = Backoff { curve, jitter, base, multiplier, cap };
            let wait = backoff.delay(n, previous.map(Duration::from_secs), RandomDraw(draw));
            prop_assert!(wait <= Duration::from_secs_f64(cap));
            if matches!(jitter, Jitter::Full | Jitter::Equal) {
                prop_assert!(wait <= backoff.curve_delay(n));
            }
            if jitter == Jitter::Equal {
                prop_assert!(wait >= backoff.curve_delay(n) / 2);
            }
        }
    }
}
