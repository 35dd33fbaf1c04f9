//! Parsing and formatting of durations: `"20m"` in configuration, `1 h 5 min` in a sentence.

use std::fmt;
use std::time::Duration;

/// The text is not a valid duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration `{0}`, expected a value like 500ms, 30s, 20m, 1h30m or 2d")]
pub struct ParseDurationError(String);

/// The units and their milliseconds, longest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Parses a duration such as `20m`, `1h 30m`, `1.5h` or `500ms`; a number without a unit is an error.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(unstuck_core::duration::parse("1h30m"), Ok(Duration::from_secs(5400)));
/// assert!(unstuck_core::duration::parse("20").is_err());
/// ```
pub fn parse(text: &str) -> Result<Duration, ParseDurationError> {
    let refuse = || ParseDurationError(text.to_owned());
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(refuse());
    }
    let mut millis = 0_f64;
    while !rest.is_empty() {
        let (number, after) = split_at_end(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split_at_end(after.trim_start(), |c| c.is_ascii_alphabetic());
        let number: f64 = number.parse().map_err(|_| refuse())?;
        millis += number * unit_millis(unit).ok_or_else(refuse)? as f64;
        rest = after.trim_start();
    }
    // A century exceeds any real wait, and keeps sums of durations from overflowing.
    if millis > 100.0 * 366.0 * 86_400_000.0 {
        return Err(refuse());
    }
    Ok(Duration::from_millis(millis.round() as u64))
}

fn split_at_end(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn unit_millis(unit: &str) -> Option<u64> {
    let short = match unit {
        "min" | "mins" | "minute" | "minutes" => "m",
        "sec" | "secs" | "second" | "seconds" => "s",
        "hour" | "hours" => "h",
        "day" | "days" => "d",
        other => other,
    };
    UNITS
        .iter()
        .find(|(name, _)| *name == short)
        .map(|(_, millis)| *millis)
}

/// Returns a duration in milliseconds.
pub fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats a duration so that [`parse`] parses the same one, to the millisecond: `1h30m`.
pub fn format_exact(duration: Duration) -> String {
    let mut rest = to_millis(duration);
    let mut text = String::new();
    for (unit, millis) in UNITS {
        let count = rest / millis;
        rest %= millis;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

/// Displays a duration in a sentence, with at most two units: `1 h 5 min`, `12 s`, `0.4 s`, `20 ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(pub Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        if seconds < 0.0995 && !self.0.is_zero() {
            return write!(f, "{} ms", (seconds * 1000.0).round().max(1.0));
        }
        if seconds < 0.95 && !self.0.is_zero() {
            return write!(f, "{seconds:.1} s");
        }
        let seconds = seconds.round() as u64;
        match seconds {
            0..60 => write!(f, "{seconds} s"),
            60..3600 => pair(f, (seconds / 60, "min"), (seconds % 60, "s")),
            3600..86_400 => pair(f, (seconds / 3600, "h"), (seconds % 3600 / 60, "min")),
            _ => pair(f, (seconds / 86_400, "d"), (seconds % 86_400 / 3600, "h")),
        }
    }
}

fn pair(f: &mut fmt::Formatter<'_>, large: (u64, &str), small: (u64, &str)) -> fmt::Result {
    write!(f, "{} {}", large.0, large.1)?;
    if small.0 > 0 {
        write!(f, " {} {}", small.0, small.1)?;
    }
    Ok(())
}

/// Serializes durations as milliseconds (`#[serde(with = "...")]`).
pub(crate) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(wait: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(super::to_millis(*wait))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// Serializes optional durations as milliseconds.
pub(crate) mod optional_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        wait: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match wait {
            Some(wait) => super::millis::serialize(wait, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

/// Serializes durations as strings with a unit.
pub(crate) mod text {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(wait: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::format_exact(*wait))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        super::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Serializes optional durations as strings with a unit.
pub(crate) mod optional_text {
    use std::time::Duration;

    use serde::Serializer;

    pub(crate) fn serialize<S: Serializer>(
        wait: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match wait {
            Some(wait) => to.serialize_str(&super::format_exact(*wait)),
            None => to.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_need_a_unit_and_may_be_combined() {
        assert_eq!(parse("20m"), Ok(Duration::from_secs(1200)));
        assert_eq!(parse(" 1 h 5 min "), Ok(Duration::from_secs(3900)));
        assert_eq!(parse("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "20", "m", "20x", "-5s", "1..5s", "9999999999d", "5s!"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn human_durations_show_at_most_two_units() {
        let human = |millis| HumanDuration(Duration::from_millis(millis)).to_string();
        assert_eq!(human(0), "0 s");
        assert_eq!(human(20), "20 ms");
        assert_eq!(human(99), "99 ms");
        assert_eq!(human(104), "0.1 s");
        assert_eq!(HumanDuration(Duration::from_micros(20)).to_string(), "1 ms");
        assert_eq!(human(400), "0.4 s");
        assert_eq!(human(12_000), "12 s");
        assert_eq!(human(59_700), "1 min");
        assert_eq!(human(90_000), "1 min 30 s");
        assert_eq!(human(3_900_000), "1 h 5 min");
        assert_eq!(human(200_000_000), "2 d 7 h");
    }

    proptest! {
        #[test]
        fn formatted_durations_parse_back(millis in 0_u64..3_000_000_000_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&format_exact(duration)), Ok(duration));
        }
    }
}
