//! The local time zone.

use unstuck_core::{ClockReading, Timestamp};

/// Converts a timestamp to the local time zone, or to UTC if the zone is unknown.
pub fn local_reading(at: Timestamp) -> ClockReading {
    let zone = jiff::tz::TimeZone::system();
    let named = zone
        .iana_name()
        .and_then(|name| ClockReading::in_zone(at, name));
    let offset = || {
        jiff::Timestamp::from_millisecond(at.millis())
            .ok()
            .and_then(|at| ClockReading::at_offset(at.into(), zone.to_offset(at).seconds()))
    };
    named
        .or_else(offset)
        .unwrap_or_else(|| ClockReading::utc(at))
}
