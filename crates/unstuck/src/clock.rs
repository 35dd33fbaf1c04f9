//! Reads the clock and formats timestamps in local time.

use std::time::Duration;

use unstuck_core::duration::HumanDuration;
use unstuck_core::{ClockReading, Timestamp};
use unstuck_run::clock::Clock;

/// Returns the current time with the local time zone.
pub(crate) fn now() -> ClockReading {
    Clock::System.reading()
}

/// Returns a timestamp with the local time zone.
pub(crate) fn local_reading(at: Timestamp) -> ClockReading {
    unstuck_run::clock::local_reading(at)
}

/// Formats a timestamp in local time, with the date if it is another day.
pub(crate) fn format_time(moment: Timestamp) -> String {
    let zone = jiff::tz::TimeZone::system();
    let local = |at: Timestamp| {
        let at = jiff::Timestamp::from_millisecond(at.millis());
        at.unwrap_or_default().to_zoned(zone.clone())
    };
    let (then, today) = (local(moment), local(now().at));
    if then.date() == today.date() {
        then.strftime("%H:%M:%S").to_string()
    } else {
        then.strftime("%Y-%m-%d %H:%M:%S").to_string()
    }
}

/// Formats a deadline in local time: the time alone if it is less than a day ahead, so that it fits on one line also around
/// midnight.
pub(crate) fn format_deadline(moment: Timestamp) -> String {
    if moment.since(now().at) < Duration::from_secs(24 * 3600) {
        let at = jiff::Timestamp::from_millisecond(moment.millis()).unwrap_or_default();
        let local = at.to_zoned(jiff::tz::TimeZone::system());
        local.strftime("%H:%M:%S").to_string()
    } else {
        format_time(moment)
    }
}

/// Formats the date of a timestamp in local time.
pub(crate) fn format_day(moment: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(moment.millis()).unwrap_or_default();
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    local.strftime("%Y-%m-%d").to_string()
}

/// Formats the age of a timestamp in one short word.
pub(crate) fn format_age(moment: Timestamp, now: Timestamp) -> String {
    let since = now.since(moment);
    if since < Duration::from_secs(60) {
        return "just now".to_owned();
    }
    let text = HumanDuration(since).to_string();
    let mut words = text.split(' ');
    match (words.next(), words.next()) {
        (Some(number), Some(unit)) => format!("{number} {unit} ago"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a wait fits an ordinary terminal only without the date.
    #[test]
    fn deadline_has_a_date_only_if_it_is_a_day_ahead() {
        let after = |hours: u64| now().at.after(Duration::from_secs(hours * 3600));
        assert_eq!(format_deadline(after(23)).len(), "23:59:59".len());
        assert_eq!(
            format_deadline(after(25)).len(),
            "2026-11-20 23:59:59".len()
        );
    }
}
