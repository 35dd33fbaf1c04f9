//! Latency distributions: fixed, uniform, or mostly short and sometimes long.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};

use super::duration;
use crate::randomness::{RandomDrawPurpose, RequestRng};

/// The 99th percentile of the standard normal distribution.
const P99: f64 = 2.326_347_874_040_841;

/// A fixed time or a distribution of times.
///
/// In a script `"20ms"`, `{ min = "5ms", max = "20ms" }` or `{ median = "300ms", p99 = "2s" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyDistribution {
    /// Always the same.
    Fixed(Duration),
    /// Uniformly distributed.
    Uniform {
        /// Minimum.
        min: Duration,
        /// Maximum.
        max: Duration,
    },
    /// Lognormally distributed, as in real services: half are shorter than the median, one in a hundred is longer than
    /// the p99.
    Lognormal {
        /// Median.
        median: Duration,
        /// 99th percentile.
        p99: Duration,
    },
}

impl LatencyDistribution {
    /// No delay.
    pub const NONE: Self = Self::Fixed(Duration::ZERO);

    pub(crate) fn draw(
        self,
        chance: RequestRng,
        purpose: RandomDrawPurpose,
        index: u64,
    ) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::Uniform { min, max } => {
                let share = chance.draw(purpose, index);
                min + max.saturating_sub(min).mul_f64(share)
            }
            Self::Lognormal { median, p99 } => {
                let ratio = p99.as_secs_f64() / median.as_secs_f64().max(f64::MIN_POSITIVE);
                let spread = ratio.max(1.0).ln() / P99;
                let seconds =
                    median.as_secs_f64() * (spread * chance.draw_normal(purpose, index)).exp();
                Duration::try_from_secs_f64(seconds).unwrap_or(p99)
            }
        }
    }
}

impl Default for LatencyDistribution {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Duration> for LatencyDistribution {
    fn from(time: Duration) -> Self {
        Self::Fixed(time)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LatencyTable {
    #[serde(default, deserialize_with = "duration::optional")]
    min: Option<Duration>,
    #[serde(default, deserialize_with = "duration::optional")]
    max: Option<Duration>,
    #[serde(default, deserialize_with = "duration::optional")]
    median: Option<Duration>,
    #[serde(default, deserialize_with = "duration::optional")]
    p99: Option<Duration>,
}

impl<'de> Deserialize<'de> for LatencyDistribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LatencyVisitor)
    }
}

const FORMS: &str = "a duration such as \"20ms\", { min = \"5ms\", max = \"20ms\" } or { median = \"300ms\", p99 = \"2s\" }";

struct LatencyVisitor;

impl<'de> Visitor<'de> for LatencyVisitor {
    type Value = LatencyDistribution;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMS)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LatencyDistribution, E> {
        let time = unstuck_core::duration::parse(text).map_err(E::custom)?;
        Ok(LatencyDistribution::Fixed(time))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LatencyDistribution, A::Error> {
        let written = LatencyTable::deserialize(MapAccessDeserializer::new(map))?;
        match (written.min, written.max, written.median, written.p99) {
            (Some(min), Some(max), None, None) if min <= max => {
                Ok(LatencyDistribution::Uniform { min, max })
            }
            (None, None, Some(median), Some(p99)) if median <= p99 && !median.is_zero() => {
                Ok(LatencyDistribution::Lognormal { median, p99 })
            }
            _ => Err(A::Error::custom(format!(
                "expected {FORMS}, with the smaller value first"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(latency: LatencyDistribution) -> Vec<Duration> {
        let mut times: Vec<_> = (0..10_000)
            .map(|number| {
                latency.draw(
                    RequestRng::for_request(3, number),
                    RandomDrawPurpose::FirstByte,
                    0,
                )
            })
            .collect();
        times.sort();
        times
    }

    #[test]
    fn a_uniform_latency_stays_between_min_and_max() {
        let (min, max) = (Duration::from_millis(5), Duration::from_millis(20));
        let times = drawn(LatencyDistribution::Uniform { min, max });
        assert!(times[0] >= min && times[9_999] <= max);
        assert!(times[0] < Duration::from_millis(6) && times[9_999] > Duration::from_millis(19));
    }

    #[test]
    fn a_lognormal_latency_has_the_stated_median_and_p99() {
        let (median, p99) = (Duration::from_millis(300), Duration::from_secs(2));
        let times = drawn(LatencyDistribution::Lognormal { median, p99 });
        let near = |time: Duration, wanted: Duration| {
            let ratio = time.as_secs_f64() / wanted.as_secs_f64();
            assert!((0.9..1.1).contains(&ratio), "{time:?} for {wanted:?}");
        };
        near(times[5_000], median);
        near(times[9_900], p99);
    }
}
