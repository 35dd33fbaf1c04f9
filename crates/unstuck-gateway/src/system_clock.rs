//! The only place that reads the system clock.

use unstuck_core::{ClockReading, Timestamp};

/// Returns the current time.
pub(crate) fn timestamp_now() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only module that reads the clock"
    )]
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_seconds(0).after(since.unwrap_or_default())
}

/// Returns the current time for messages of an API, which state times in UTC.
pub(crate) fn clock_reading() -> ClockReading {
    ClockReading::utc(timestamp_now())
}
