//! Randomness as an argument: one draw per decision, recorded with it, so that a decision can be replayed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A random number drawn by the caller.
///
/// On the wire it is sixteen hexadecimal digits, since JSON parsers lose the low bits of large numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RandomDraw(pub u64);

/// The text is not a valid draw.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid random draw `{0}`: expected up to 16 hexadecimal digits")]
pub struct ParseRandomDrawError(String);

impl RandomDraw {
    /// Returns a number in (0, 1]: never 0, so that full jitter never means "immediately".
    pub fn fraction(self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        ((self.0 >> 11) as f64 + 1.0) / STEPS
    }
}

impl fmt::Display for RandomDraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for RandomDraw {
    type Err = ParseRandomDrawError;

    fn from_str(text: &str) -> Result<Self, ParseRandomDrawError> {
        u64::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| ParseRandomDrawError(text.to_owned()))
    }
}

impl Serialize for RandomDraw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RandomDraw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A reproducible source of draws for simulations and tests (SplitMix64); not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Creates a source that gives the same draws for the same seed.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next draw.
    pub const fn next_draw(&mut self) -> RandomDraw {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        RandomDraw(mixed ^ (mixed >> 31))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_above_zero_and_at_most_one() {
        assert!(RandomDraw(0).fraction() > 0.0);
        assert_eq!(RandomDraw(u64::MAX).fraction(), 1.0);
    }

    #[test]
    fn a_draw_round_trips_with_every_bit() {
        let draw = SeededRng::seeded(7).next_draw();
        let json = serde_json::to_string(&draw).unwrap();
        assert_eq!(serde_json::from_str::<RandomDraw>(&json).unwrap(), draw);
        assert!("xyz".parse::<RandomDraw>().is_err());
    }
}
