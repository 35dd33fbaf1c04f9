//! Timestamps and durations: short, with the exact value as title, and updated by the script.

use std::time::Duration;

use maud::{Markup, html};
use unstuck_core::Timestamp;

/// Renders the time since a timestamp.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    html! {
        time datetime=(at) title=(exact(at)) data-ago=(at.millis()) { (ago_text(now.since(at))) }
    }
}

/// Renders the time until a timestamp.
pub(crate) fn until(at: Timestamp, now: Timestamp) -> Markup {
    let left = at.since(now);
    html! {
        time datetime=(at) title=(exact(at)) data-until=(at.millis()) {
            @if left.is_zero() { "now" } @else { "in " (countdown(left)) }
        }
    }
}

/// Renders the duration of something that is still running.
pub(crate) fn since(at: Timestamp, now: Timestamp) -> Markup {
    html! {
        time datetime=(at) title={ "since " (exact(at)) } data-since=(at.millis()) { (countdown(now.since(at))) }
    }
}

/// Renders a timestamp with date and zone: UTC, or the viewer's zone if scripts run.
pub(crate) fn date_time(at: Timestamp) -> Markup {
    html! {
        time datetime=(at) data-clock { (exact(at)) }
    }
}

/// Formats a timestamp to the second, in UTC.
pub(crate) fn exact(at: Timestamp) -> String {
    let text = at.to_string();
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => text,
    }
}

/// Formats a duration for a countdown. The script uses the same format.
pub(crate) fn countdown(time: Duration) -> String {
    let s = time.as_millis().div_ceil(1000);
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        3600..172_800 => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

/// Formats a duration.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..10_000 if ms % 1000 >= 100 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => countdown(Duration::from_secs(time.as_secs())),
    }
}

fn ago_text(time: Duration) -> String {
    match time.as_secs() {
        0..5 => "just now".to_owned(),
        s @ 5..60 => format!("{s} s ago"),
        s @ 60..3600 => format!("{} min ago", s / 60),
        s @ 3600..172_800 => format!("{} h ago", s / 3600),
        s => format!("{} d ago", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_short_with_the_exact_value_as_title() {
        let at = Timestamp::from_seconds(1_794_777_000);
        insta::assert_snapshot!(
            ago(at, at.after(Duration::from_secs(200))).into_string(),
            @r#"<time datetime="2026-11-15T21:10:00Z" title="2026-11-15 21:10:00 UTC" data-ago="1794777000000">3 min ago</time>"#
        );
        insta::assert_snapshot!(
            until(at.after(Duration::from_millis(42_300)), at).into_string(),
            @r#"<time datetime="2026-11-15T21:10:42.3Z" title="2026-11-15 21:10:42 UTC" data-until="1794777042300">in 43 s</time>"#
        );
    }

    #[test]
    fn past_deadline_is_shown_as_now() {
        let at = Timestamp::from_seconds(1_794_777_000);
        assert!(
            until(at, at.after(Duration::from_secs(9)))
                .into_string()
                .contains(">now<")
        );
    }

    #[test]
    fn durations_are_readable() {
        let said = |seconds| countdown(Duration::from_secs(seconds));
        assert_eq!(said(59), "59 s");
        assert_eq!(said(200), "3 min 20 s");
        assert_eq!(said(7_500), "2 h 05 min");
        assert_eq!(said(200_000), "2 d 7 h");
        assert_eq!(duration(Duration::from_millis(1_450)), "1.4 s");
        assert_eq!(duration(Duration::from_secs(2)), "2 s");
    }
}
