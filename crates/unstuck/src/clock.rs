//! The present moment, and how moments are shown to the person here.

use std::time::Duration;

use unstuck_core::duration::Human;
use unstuck_core::{Now, Timestamp};
use unstuck_run::clock::{Clock, here};

/// The present moment, here.
pub(crate) fn now() -> Now {
    Clock::System.now()
}

/// A moment, here.
pub(crate) fn at(at: Timestamp) -> Now {
    here(at)
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

/// The day of a moment, as a person here writes it.
pub(crate) fn day(moment: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(moment.millis()).unwrap_or_default();
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    local.strftime("%Y-%m-%d").to_string()
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
