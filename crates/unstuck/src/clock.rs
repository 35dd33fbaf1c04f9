//! The one place that reads the clock and the local time zone.

use std::time::Duration;

use unstuck_core::duration::Human;
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

/// A moment as a person here reads it: the time, and the day if it is another one.
pub(crate) fn shown(moment: Timestamp) -> String {
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

/// How long ago a moment was, in one short word.
pub(crate) fn ago(moment: Timestamp, now: Timestamp) -> String {
    let since = now.since(moment);
    if since < Duration::from_secs(60) {
        return "just now".to_owned();
    }
    let text = Human(since).to_string();
    let mut words = text.split(' ');
    match (words.next(), words.next()) {
        (Some(number), Some(unit)) => format!("{number} {unit} ago"),
        _ => text,
    }
}
