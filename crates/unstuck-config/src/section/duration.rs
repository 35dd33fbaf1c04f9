//! Deserializes durations with a unit, such as `20m`.

use std::fmt;
use std::time::Duration;

use serde::Deserializer;
use serde::de::{self, Unexpected, Visitor};

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration in quotes, like \"90s\", \"20m\" or \"1h30m\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        let read = unstuck_core::duration::parse(text);
        read.map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Reads a duration.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_str(DurationVisitor)
}

/// Reads an optional duration.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    read(from).map(Some)
}

/// Returns the JSON Schema of a duration.
pub(super) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "pattern": r"^\s*([0-9.]+\s*(ms|s|m|h|d|sec|secs|second|seconds|min|mins|minute|minutes|hour|hours|day|days)\s*)+$",
        "examples": ["90s", "20m", "1h30m"]
    })
}
