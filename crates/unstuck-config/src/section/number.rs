//! Deserializes numbers with a lower bound.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

/// Reads a count of at least one.
pub(super) fn at_least_one<'de, D, N>(from: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de> + Default + PartialEq,
{
    let count = N::deserialize(from)?;
    if count == N::default() {
        return Err(Error::invalid_value(Unexpected::Unsigned(0), &"1 or more"));
    }
    Ok(count)
}

/// Reads an optional amount.
pub(super) fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(from)?;
    match amount {
        Some(amount) if !amount.is_finite() || amount < 0.0 => Err(Error::invalid_value(
            Unexpected::Float(amount),
            &"0 or more",
        )),
        _ => Ok(amount),
    }
}

/// Reads an optional factor.
pub(super) fn factor<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let factor = Option::<f64>::deserialize(from)?;
    match factor {
        Some(factor) if !factor.is_finite() || factor < 0.1 => Err(Error::invalid_value(
            Unexpected::Float(factor),
            &"0.1 or more",
        )),
        _ => Ok(factor),
    }
}

/// Reads a price.
pub(super) fn price<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let price = f64::deserialize(from)?;
    if price.is_finite() && price >= 0.0 {
        Ok(price)
    } else {
        Err(Error::invalid_value(Unexpected::Float(price), &"0 or more"))
    }
}
