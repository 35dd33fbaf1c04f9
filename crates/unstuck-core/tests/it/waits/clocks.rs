//! Clock times and dates, with time zones and daylight saving changes.

use unstuck_core::ClockReading;

use super::{moment, said, until, wait};
use crate::NOW;

#[test]
fn clock_time_is_in_the_stated_or_local_zone() {
    let at = moment(NOW);
    let utc = ClockReading::utc(at);
    let berlin = ClockReading::in_zone(at, "Europe/Berlin").unwrap();
    let india = ClockReading::at_offset(at, 19_800).unwrap();
    for (text, now, moment) in [
        (
            "5-hour limit reached · resets 3pm (Europe/Berlin)",
            &utc,
            "2026-11-16T14:00:00Z",
        ),
        (
            "5-hour limit reached - resets 11:30am (Asia/Colombo)",
            &utc,
            "2026-11-16T06:00:00Z",
        ),
        (
            "You've hit your 5-hour limit · resets 9:30pm (UTC)",
            &berlin,
            "2026-11-15T21:30:00Z",
        ),
        (
            "5-hour limit reached - resets 3pm",
            &utc,
            "2026-11-16T15:00:00Z",
        ),
        (
            "5-hour limit reached - resets 3pm",
            &berlin,
            "2026-11-16T14:00:00Z",
        ),
        (
            "5-hour limit reached - resets 3pm",
            &india,
            "2026-11-16T09:30:00Z",
        ),
        (
            "5-hour limit reached - resets 11pm",
            &berlin,
            "2026-11-15T22:00:00Z",
        ),
        (
            "You’ve hit your usage limit. Visit x or try again at 8:36 PM.",
            &utc,
            "2026-11-15T20:36:00Z",
        ),
        (
            "You’ve hit your usage limit. Visit x or try again at 8:36 PM.",
            &berlin,
            "2026-11-16T19:36:00Z",
        ),
        (
            "Your limit will reset at 12am (America/New_York).",
            &utc,
            "2026-11-16T05:00:00Z",
        ),
        (
            "Your limit will reset at 12pm (America/New_York).",
            &utc,
            "2026-11-16T17:00:00Z",
        ),
    ] {
        assert_eq!(until(&said(text), now), moment, "{text} {now:?}");
    }
}

#[test]
fn zone_is_a_place_an_abbreviation_or_an_offset() {
    let now = ClockReading::in_zone(moment(NOW), "Asia/Tokyo").unwrap();
    for (text, moment) in [
        (
            "resets 3am (America/Port-au-Prince)",
            "2026-11-16T08:00:00Z",
        ),
        (
            "resets 3am (America/Argentina/Buenos_Aires)",
            "2026-11-16T06:00:00Z",
        ),
        ("Access resets at 10:57 PM GMT-3.", "2026-11-16T01:57:00Z"),
        ("resets at 09:00 UTC+8", "2026-11-16T01:00:00Z"),
        ("resets at 09:00 (UTC+05:30)", "2026-11-16T03:30:00Z"),
        ("resets 3pm PT", "2026-11-15T23:00:00Z"),
        ("resets 3pm CET", "2026-11-16T14:00:00Z"),
        ("resets 3pm but not for you", "2026-11-16T06:00:00Z"),
        ("resets Nov 20 at 9am UTC+2", "2026-11-20T07:00:00Z"),
    ] {
        let failure = said(&format!("5-hour limit reached · {text}"));
        assert_eq!(until(&failure, &now), moment, "{text}");
    }
}

#[test]
fn date_is_the_next_such_day() {
    let now = ClockReading::utc(moment(NOW));
    for (text, moment) in [
        (
            "Weekly limit reached ∙ resets Nov 20, 9am (Europe/Rome)",
            "2026-11-20T08:00:00Z",
        ),
        (
            "Weekly limit reached ∙ resets Jan 3 at 4pm (UTC)",
            "2027-01-03T16:00:00Z",
        ),
        (
            "Weekly limit reached ∙ resets Thursday 3pm (UTC)",
            "2026-11-19T15:00:00Z",
        ),
        (
            "Daily limit reached, resets tomorrow at 9am (UTC)",
            "2026-11-16T09:00:00Z",
        ),
        (
            "Daily limit reached, resets at midnight PST",
            "2026-11-16T08:00:00Z",
        ),
    ] {
        assert_eq!(until(&said(text), &now), moment, "{text}");
    }
}

#[test]
fn next_valid_time_is_used_when_clocks_change() {
    for (text, at, moment) in [
        // Spring: 02:00 to 03:00 does not exist in Berlin on 29 March 2026.
        (
            "resets 3am (Europe/Berlin)",
            "2026-03-29T00:00:00Z",
            "2026-03-29T01:00:00Z",
        ),
        (
            "resets 2:30am (Europe/Berlin)",
            "2026-03-29T00:00:00Z",
            "2026-03-29T01:30:00Z",
        ),
        (
            "resets 9am (Europe/Berlin)",
            "2026-03-28T09:00:00Z",
            "2026-03-29T07:00:00Z",
        ),
        // Autumn: 02:00 to 03:00 occurs twice on 25 October 2026.
        (
            "resets 3am (Europe/Berlin)",
            "2026-10-24T22:00:00Z",
            "2026-10-25T02:00:00Z",
        ),
        (
            "resets 2:30am (Europe/Berlin)",
            "2026-10-24T22:00:00Z",
            "2026-10-25T00:30:00Z",
        ),
        (
            "resets 2:30am (Europe/Berlin)",
            "2026-10-25T00:40:00Z",
            "2026-10-25T01:30:00Z",
        ),
        (
            "resets 2:30am (Europe/Berlin)",
            "2026-10-25T01:40:00Z",
            "2026-10-26T01:30:00Z",
        ),
        (
            "resets 1:30am (America/New_York)",
            "2026-11-01T05:45:00Z",
            "2026-11-01T06:30:00Z",
        ),
    ] {
        let failure = said(&format!("5-hour limit reached · {text}"));
        let now = ClockReading::utc(super::moment(at));
        assert_eq!(until(&failure, &now), moment, "{text} at {at}");
    }
}

#[test]
fn unknown_zone_or_time_does_not_invent_a_wait() {
    assert_eq!(wait(&said("5-hour limit reached · resets 25:99")), None);
    assert_eq!(wait(&said("5-hour limit reached · resets 13pm")), None);
    assert_eq!(ClockReading::in_zone(moment(NOW), "Nowhere/Land"), None);
    assert_eq!(ClockReading::at_offset(moment(NOW), i32::MAX), None);
}

/// Regression tests: an undated reset is relative to when it was printed, whenever it is read.
mod printed {
    use unstuck_core::failure::LossyText;
    use unstuck_core::{ClockReading, Failure, Timestamp};

    use super::{moment, until};

    const BANNER: &str = "5-hour limit reached - resets 10:30pm\n";

    /// Returns the end of the wait of an agent that printed these texts at these times, read at another.
    fn read_at(now: &str, printed: &[(&str, &str)]) -> String {
        let mut text = String::new();
        let mut times: Vec<(usize, Timestamp)> = Vec::new();
        for (at, part) in printed {
            times.push((text.len(), moment(at)));
            text.push_str(part);
        }
        let text = LossyText::from(text).with_print_times(times);
        let failure = Failure::agent("claude")
            .with_exit_code(1)
            .with_stdout(text)
            .with_stderr("");
        until(&failure, &ClockReading::utc(moment(now)))
    }

    #[test]
    fn clock_time_is_on_the_day_it_was_printed() {
        let evening = [("2026-11-15T21:00:00Z", BANNER)];
        for (now, reset) in [
            ("2026-11-15T21:01:00Z", "2026-11-15T22:30:00Z"),
            ("2026-11-15T22:29:59Z", "2026-11-15T22:30:00Z"),
            // It is over, so no wait is left; it is not tomorrow's.
            ("2026-11-15T22:31:00Z", ""),
            ("2026-11-16T00:10:00Z", ""),
        ] {
            assert_eq!(read_at(now, &evening), reset, "{now}");
        }
        let night = [(
            "2026-11-15T21:00:00Z",
            "5-hour limit reached - resets 12:04am\n",
        )];
        let read = read_at("2026-11-16T00:01:00Z", &night);
        assert_eq!(read, "2026-11-16T00:04:00Z");
    }

    #[test]
    fn redrawn_banner_is_relative_to_its_first_appearance() {
        let drawn = [
            ("2026-11-15T22:00:00Z", "work\n"),
            ("2026-11-15T22:20:00Z", BANNER),
            ("2026-11-15T22:31:00Z", BANNER),
        ];
        assert_eq!(read_at("2026-11-15T22:31:05Z", &drawn), "");
    }

    #[test]
    fn restated_wait_is_relative_to_the_restatement() {
        let wait = "Rate limit reached. Please try again in 10 minutes.\n";
        let once = [("2026-11-15T21:00:00Z", wait)];
        let read = read_at("2026-11-15T21:04:00Z", &once);
        assert_eq!(read, "2026-11-15T21:10:00Z");
        let twice = [once[0], ("2026-11-15T21:03:00Z", wait)];
        let read = read_at("2026-11-15T21:04:00Z", &twice);
        assert_eq!(read, "2026-11-15T21:13:00Z");
    }

    #[test]
    fn line_in_pieces_was_printed_with_its_last_piece() {
        let (one, other) = BANNER.split_at(20);
        let pieces = [
            ("2026-11-14T21:00:00Z", "hello\n"),
            ("2026-11-14T23:00:00Z", one),
            ("2026-11-15T21:00:00Z", other),
        ];
        let read = read_at("2026-11-15T21:01:00Z", &pieces);
        assert_eq!(read, "2026-11-15T22:30:00Z");
    }
}
