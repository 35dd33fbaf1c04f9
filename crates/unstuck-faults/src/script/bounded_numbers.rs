//! Script values with bounds: shares from 0 to 1, and other numbers.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, de::Unexpected};

/// Parses a number from 0 to 1.
pub(super) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    check_bounds(f64::deserialize(deserializer)?, 1.0, "a number from 0 to 1")
}

/// Parses a number of at least 0.
pub(super) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    check_bounds(
        f64::deserialize(deserializer)?,
        1e9,
        "a number from 0 to 1000000000",
    )
}

/// Parses an optional number above 0.
pub(super) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let rate = amount(deserializer)?;
    if rate == 0.0 {
        return Err(D::Error::custom("expected a number greater than 0"));
    }
    Ok(Some(rate))
}

fn check_bounds<E: Error>(number: f64, most: f64, expected: &str) -> Result<f64, E> {
    if (0.0..=most).contains(&number) {
        Ok(number)
    } else {
        Err(E::invalid_value(Unexpected::Float(number), &expected))
    }
}
