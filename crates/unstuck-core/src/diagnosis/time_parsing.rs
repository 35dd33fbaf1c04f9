//! Parses durations, dates and times of day in failure messages.

use std::time::Duration;

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

use crate::time::{ClockReading, Timestamp};

/// Parses a duration such as `6m0s`, `1.5s`, `2m 13s`, `58 hours`, `5 hours and 30 minutes`, `900ms`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text
        .trim()
        .to_ascii_lowercase()
        .replace(" and ", " ")
        .replace(',', " ");
    let mut rest = text.trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        total += number * unit_seconds(&rest[..letters])?;
        rest = rest[letters..].trim_start();
    }
    (total > 0.0)
        .then(|| Duration::try_from_secs_f64(total).ok())
        .flatten()
}

fn unit_seconds(name: &str) -> Option<f64> {
    Some(match name {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 0.001,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// Parses an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn parse_http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text)
        .ok()
        .map(|zoned| zoned.timestamp().into())
}

/// Returns the next occurrence of a time of day, in the named zone or the local one.
///
/// A time without seconds that equals the current minute means the rest of this minute, not tomorrow.
pub(crate) fn next_time_of_day(
    time: &str,
    zone: Option<&str>,
    now: &ClockReading,
) -> Option<Timestamp> {
    let zone = parse_zone(zone, now)?;
    let here = now.at.to_jiff().to_zoned(zone);
    let exact = time.matches(':').count() == 2;
    let time = parse_time_of_day(time)?;
    let shown_now = (here.hour(), here.minute()) == (time.hour(), time.minute());
    if shown_now && !exact {
        let passed = Duration::from_millis(now.at.millis().rem_euclid(60_000).unsigned_abs());
        return Some(now.at.after(Duration::from_secs(60).saturating_sub(passed)));
    }
    let days = [Ok(here.date()), here.date().tomorrow()];
    let moments = days.into_iter().flatten().flat_map(|day| {
        // When clocks are set back, a time of day occurs twice.
        let shown = || here.time_zone().to_ambiguous_zoned(day.to_datetime(time));
        [shown().compatible(), shown().later()]
    });
    moments
        .flatten()
        .map(|moment| moment.timestamp())
        .find(|moment| *moment > here.timestamp())
        .map(Timestamp::from)
}

fn at_date(date: Date, time: Time, here: &Zoned) -> Option<Zoned> {
    date.to_datetime(time)
        .to_zoned(here.time_zone().clone())
        .ok()
}

fn parse_zone(name: Option<&str>, now: &ClockReading) -> Option<TimeZone> {
    match name.map(str::trim) {
        None | Some("") => Some(now.zone().clone()),
        Some("UTC" | "GMT" | "Z" | "utc") => Some(TimeZone::UTC),
        Some(name) => TimeZone::get(name)
            .ok()
            .or_else(|| zone_of_abbreviation(name))
            .or_else(|| parse_offset(name))
            .or_else(|| Some(now.zone().clone())),
    }
}

/// Parses an offset: `GMT-3`, `UTC+8`, `UTC+05:30`.
fn parse_offset(name: &str) -> Option<TimeZone> {
    let name = name.to_ascii_lowercase();
    let stated = name
        .strip_prefix("utc")
        .or_else(|| name.strip_prefix("gmt"))?;
    let sign = if stated.starts_with('-') { -1 } else { 1 };
    let digits = stated.trim_start_matches(['+', '-']).replace(':', "");
    let (hours, minutes) = digits.split_at(digits.len().min(2));
    let part = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<i32>().ok(),
    };
    let seconds = part(hours)? * 3600 + part(minutes)? * 60;
    let offset = jiff::tz::Offset::from_seconds(sign * seconds).ok()?;
    Some(TimeZone::fixed(offset))
}

/// Returns the time zone of an American abbreviation.
fn zone_of_abbreviation(name: &str) -> Option<TimeZone> {
    let full = match name.to_ascii_uppercase().as_str() {
        "PT" | "PST" | "PDT" => "America/Los_Angeles",
        "MT" | "MST" | "MDT" => "America/Denver",
        "CT" | "CST" | "CDT" => "America/Chicago",
        "ET" | "EST" | "EDT" => "America/New_York",
        "CET" | "CEST" => "Europe/Berlin",
        "BST" => "Europe/London",
        "JST" => "Asia/Tokyo",
        "IST" => "Asia/Kolkata",
        _ => return None,
    };
    TimeZone::get(full).ok()
}

/// Parses a time of day: `3pm`, `11:30am`, `8:36 PM`, `15:00`, `15:00:30`, `midnight`, `noon`.
fn parse_time_of_day(text: &str) -> Option<Time> {
    let text = text.trim().to_ascii_lowercase().replace('.', "");
    match text.as_str() {
        "midnight" => return Some(Time::midnight()),
        "noon" => return Time::new(12, 0, 0, 0).ok(),
        _ => {}
    }
    let (digits, half) = match text
        .strip_suffix("am")
        .map(|rest| (rest, 0))
        .or_else(|| text.strip_suffix("pm").map(|rest| (rest, 12)))
    {
        Some((rest, half)) => (rest.trim(), Some(half)),
        None => (text.trim(), None),
    };
    let mut parts = digits.split(':');
    let hour: i8 = parts.next()?.trim().parse().ok()?;
    let mut further = || parts.next().map_or(Some(0), |part| part.parse::<i8>().ok());
    let (minute, second) = (further()?, further()?);
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    Time::new(hour, minute, second, 0).ok()
}

/// Parses a date with or without a time: `2026-09-01 at 00:00`, `2026-09-01T00:00:00Z`, `Oct 9 at 5pm`, `9 Oct 2026,
/// 17:00`, `Thursday 3pm`.
pub(crate) fn parse_date(text: &str, zone: Option<&str>, now: &ClockReading) -> Option<Timestamp> {
    let text = text.trim().trim_end_matches(['.', ',']);
    if let Ok(exact) = text.replace(' ', "T").parse::<Timestamp>() {
        return Some(exact);
    }
    let here = now.at.to_jiff().to_zoned(parse_zone(zone, now)?);
    let moment = match text.parse::<DateTime>() {
        Ok(stated) => stated.to_zoned(here.time_zone().clone()).ok()?,
        Err(_) => DateParts::parse(text, &here).resolve(&here)?,
    };
    Some(moment.timestamp().into())
}

/// The stated parts of a date.
#[derive(Default)]
struct DateParts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    days_ahead: Option<i64>,
    time: Option<Time>,
}

impl DateParts {
    fn parse(text: &str, here: &Zoned) -> Self {
        let mut parts = Self::default();
        let spaced = text.to_ascii_lowercase().replace(',', " ");
        let mut words = spaced.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let half = words
                .next_if(|next| matches!(*next, "am" | "pm"))
                .unwrap_or_default();
            parts.add_word(word, half, here);
        }
        parts
    }

    fn add_word(&mut self, word: &str, half: &str, here: &Zoned) {
        let ordinal = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if let Ok(exact) = word.parse::<Date>() {
            (self.year, self.month, self.day) =
                (Some(exact.year()), Some(exact.month()), Some(exact.day()));
        } else if let Some(month) = parse_month(word) {
            self.month = Some(month);
        } else if let Some(days) = days_until(word, here) {
            self.days_ahead = Some(days);
        } else if word.contains(':')
            || !half.is_empty()
            || word.ends_with("am")
            || word.ends_with("pm")
        {
            self.time = parse_time_of_day(&format!("{word}{half}")).or(self.time);
        } else if let Ok(number) = ordinal.parse::<i16>() {
            match i8::try_from(number) {
                Ok(day) if day <= 31 => self.day = Some(day),
                _ => self.year = Some(number),
            }
        }
    }

    /// Returns the stated day, or the next day of that name.
    fn resolve(&self, here: &Zoned) -> Option<Zoned> {
        let time = self.time.unwrap_or_else(Time::midnight);
        if let Some(days) = self.days_ahead {
            return at_date(
                here.date().checked_add(jiff::Span::new().days(days)).ok()?,
                time,
                here,
            );
        }
        let in_year = |year| at_date(Date::new(year, self.month?, self.day?).ok()?, time, here);
        let stated = in_year(self.year.unwrap_or(here.year()))?;
        if self.year.is_none() && stated.timestamp() < here.timestamp() {
            return in_year(here.year() + 1);
        }
        Some(stated)
    }
}

fn parse_month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let at = MONTHS.iter().position(|month| {
        word.starts_with(month) && word.chars().all(|c| c.is_ascii_alphabetic() || c == '.')
    })?;
    i8::try_from(at + 1).ok()
}

/// Returns the number of days until the next day of that name; "tomorrow" is one.
fn days_until(word: &str, here: &Zoned) -> Option<i64> {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    if word == "tomorrow" {
        return Some(1);
    }
    let wanted = DAYS.iter().position(|day| {
        word.starts_with(day)
            && word.ends_with(['y', 'n', 'e', 'd', 'u', 'i', 't', 's'])
            && word.len() <= 9
    })?;
    let today = i64::from(here.weekday().to_monday_zero_offset());
    Some((i64::try_from(wanted).ok()? - today + 6) % 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> ClockReading {
        ClockReading::in_zone("2026-11-15T20:30:00Z".parse().unwrap(), "Europe/Berlin").unwrap()
    }

    fn shown(moment: Option<Timestamp>) -> String {
        moment.map(|moment| moment.to_string()).unwrap_or_default()
    }

    #[test]
    fn durations_are_parsed_in_every_notation() {
        for (text, seconds) in [
            ("6m0s", 360.0),
            ("1.5s", 1.5),
            ("28ms", 0.028),
            ("2m 13s", 133.0),
            ("9m38.016s", 578.016),
            ("58 hours", 209_304.0 - 504.0),
            ("5 hours and 30 minutes", 19_800.0),
            ("37 seconds", 37.0),
            ("1h2m", 3720.0),
            ("840", 840.0),
            ("2 days, 3 hours", 183_600.0),
        ] {
            assert!(
                (parse_duration(text).unwrap().as_secs_f64() - seconds).abs() < 1e-6,
                "{text}"
            );
        }
        assert_eq!(parse_duration("soon"), None);
        assert_eq!(parse_duration("3 apples"), None);
    }

    #[test]
    fn time_of_day_is_its_next_occurrence_in_the_stated_or_local_zone() {
        assert_eq!(
            shown(next_time_of_day("3pm", None, &berlin())),
            "2026-11-16T14:00:00Z"
        );
        assert_eq!(
            shown(next_time_of_day("11pm", None, &berlin())),
            "2026-11-15T22:00:00Z"
        );
        assert_eq!(
            shown(next_time_of_day("8:30pm", Some("Asia/Tokyo"), &berlin())),
            "2026-11-16T11:30:00Z"
        );
        assert_eq!(
            shown(next_time_of_day("15:00", Some("UTC"), &berlin())),
            "2026-11-16T15:00:00Z"
        );
        assert_eq!(
            shown(next_time_of_day(
                "00:00",
                Some("America/Los_Angeles"),
                &berlin()
            )),
            "2026-11-16T08:00:00Z"
        );
        assert_eq!(next_time_of_day("25:00", None, &berlin()), None);
    }

    /// Agents truncate the seconds of a reset time: in its own minute it is still in the future.
    #[test]
    fn current_minute_is_not_tomorrow() {
        let now = ClockReading::utc("2026-11-15T20:36:21Z".parse().unwrap());
        assert_eq!(
            shown(next_time_of_day("8:36 PM", None, &now)),
            "2026-11-15T20:37:00Z"
        );
        assert_eq!(
            shown(next_time_of_day("20:36:10", None, &now)),
            "2026-11-16T20:36:10Z"
        );
    }

    #[test]
    fn dates_are_parsed_with_and_without_year_and_time() {
        for (text, moment) in [
            ("2026-12-01 at 00:00", "2026-12-01T00:00:00Z"),
            ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            ("Dec 9 at 5pm", "2026-12-09T17:00:00Z"),
            ("Feb 3, 4:12 PM", "2027-02-03T16:12:00Z"),
            ("9 December 2026 17:00", "2026-12-09T17:00:00Z"),
            ("Thursday 3pm", "2026-11-19T15:00:00Z"),
            ("Nov 20th, 2026 10:16 AM", "2026-11-20T10:16:00Z"),
        ] {
            assert_eq!(
                shown(parse_date(text, Some("UTC"), &berlin())),
                moment,
                "{text}"
            );
        }
    }

    #[test]
    fn http_dates_are_parsed() {
        assert_eq!(
            shown(parse_http_date("Sun, 15 Nov 2026 20:31:00 GMT")),
            "2026-11-15T20:31:00Z"
        );
    }
}
