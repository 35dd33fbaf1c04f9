//! Script values of durations such as `"300ms"`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Parses a required duration.
pub(super) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    unstuck_core::duration::parse(&text).map_err(serde::de::Error::custom)
}

/// Parses an optional duration.
pub(super) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    required(deserializer).map(Some)
}
