//! Timestamps and clock readings. The core never reads a clock: the caller passes in the time and the zone.

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

const DAY_MS: i64 = 86_400_000;

/// A timestamp in milliseconds since the Unix epoch; on the wire an RFC 3339 string in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// The text is not a valid timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid timestamp `{0}`, expected a value like 2026-11-15T21:30:00Z")]
pub struct ParseTimestampError(String);

impl Timestamp {
    /// The earliest timestamp that can be written: the year -9999.
    pub const MIN: Self = Self(-377_705_023_201_000);
    /// The latest timestamp that can be written: the end of the year 9999. A later clock reading is clamped to this, so
    /// that recorded events can be read again.
    pub const MAX: Self = Self(253_402_207_200_999);

    /// Returns the timestamp this many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        if millis > Self::MAX.0 {
            Self::MAX
        } else if millis < Self::MIN.0 {
            Self::MIN
        } else {
            Self(millis)
        }
    }

    /// Returns the timestamp this many seconds after the Unix epoch.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_millis(seconds.saturating_mul(1000))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns the timestamp this much later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(wait))
    }

    /// Returns the timestamp this much earlier.
    #[must_use]
    pub fn before(self, time: Duration) -> Self {
        let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(time))
    }

    /// Returns the time since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the number of the day (UTC) since the Unix epoch. All budgets of a day count these days.
    pub const fn day_number(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }

    /// Returns the start of the day (UTC).
    #[must_use]
    pub const fn start_of_day(self) -> Self {
        Self::from_millis(self.day_number() * DAY_MS)
    }

    pub(crate) fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        })
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(timestamp: jiff::Timestamp) -> Self {
        Self(timestamp.as_millisecond())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_jiff().fmt(f)
    }
}

impl std::str::FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, ParseTimestampError> {
        text.parse::<jiff::Timestamp>()
            .map(Self::from)
            .map_err(|_| ParseTimestampError(text.to_owned()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A reading of the clock, with the zone in which a bare "3pm" is interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReading {
    /// The current time.
    pub at: Timestamp,
    zone: TimeZone,
}

impl ClockReading {
    /// Creates a reading that interprets clock times in UTC.
    pub fn utc(at: Timestamp) -> Self {
        Self {
            at,
            zone: TimeZone::UTC,
        }
    }

    /// Creates a reading in a named zone such as `Europe/Berlin`; `None` if the zone does not exist.
    pub fn in_zone(at: Timestamp, name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(|zone| Self { at, zone })
    }

    /// Creates a reading that interprets clock times this many seconds east of UTC.
    pub fn at_offset(at: Timestamp, seconds_east: i32) -> Option<Self> {
        jiff::tz::Offset::from_seconds(seconds_east)
            .ok()
            .map(|offset| Self {
                at,
                zone: TimeZone::fixed(offset),
            })
    }

    /// Returns a reading with another timestamp in the same zone.
    #[must_use]
    pub fn with_time(&self, at: Timestamp) -> Self {
        Self { at, ..self.clone() }
    }

    pub(crate) fn zone(&self) -> &TimeZone {
        &self.zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L9: a clock beyond the writable range gives a timestamp that can be read again.
    #[test]
    fn timestamps_round_trip() {
        assert_eq!(Timestamp::MAX, jiff::Timestamp::MAX.into());
        assert_eq!(Timestamp::MIN, jiff::Timestamp::MIN.into());
        for millis in [i64::MIN, -1, 0, 9_000_000_000_000_000, i64::MAX] {
            let moment = Timestamp::from_millis(millis);
            for moment in [
                moment,
                moment.after(Duration::MAX),
                moment.before(Duration::MAX),
            ] {
                let text = serde_json::to_string(&moment).unwrap();
                assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), moment);
            }
        }
    }
}
