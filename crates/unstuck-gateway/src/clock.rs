//! The one place that reads the clock on the wall.

use unstuck_core::{ClockReading, Timestamp};

/// The present moment.
pub(crate) fn timestamp_now() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that reads the clock"
    )]
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_seconds(0).after(since.unwrap_or_default())
}

/// The present moment, for what an API says; APIs state their times in UTC.
pub(crate) fn clock_reading() -> ClockReading {
    ClockReading::utc(timestamp_now())
}
