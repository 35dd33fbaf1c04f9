//! The time zone of the machine.

use unstuck_core::{Now, Timestamp};

/// A moment in the zone of the machine, or in UTC where that is not known.
pub fn here(at: Timestamp) -> Now {
    let zone = jiff::tz::TimeZone::system();
    let named = zone.iana_name().and_then(|name| Now::in_zone(at, name));
    let offset = || {
        jiff::Timestamp::from_millisecond(at.millis())
            .ok()
            .and_then(|at| Now::at_offset(at.into(), zone.to_offset(at).seconds()))
    };
    named.or_else(offset).unwrap_or_else(|| Now::utc(at))
}
