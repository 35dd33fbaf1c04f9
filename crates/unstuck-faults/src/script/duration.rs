//! Durations such as `"300ms"`, as values of a script.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A duration that must be there.
pub(super) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    unstuck_core::duration::parse(&text).map_err(serde::de::Error::custom)
}

/// A duration that may be left out.
pub(super) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    required(deserializer).map(Some)
}
