//! The one place that reads the clock and the local time zone.

use unstuck_core::{Now, Timestamp};

/// The present moment, here.
pub(crate) fn now() -> Now {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that reads the clock"
    )]
    let at = jiff::Timestamp::now();
    self::at(Timestamp::from_millis(at.as_millisecond()))
}

/// A moment, here.
pub(crate) fn at(at: Timestamp) -> Now {
    let zone = jiff::tz::TimeZone::system();
    let named = zone.iana_name().and_then(|name| Now::in_zone(at, name));
    let offset = || {
        jiff::Timestamp::from_millisecond(at.millis())
            .ok()
            .and_then(|at| Now::at_offset(at.into(), zone.to_offset(at).seconds()))
    };
    named.or_else(offset).unwrap_or_else(|| Now::utc(at))
}
