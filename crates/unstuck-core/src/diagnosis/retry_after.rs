//! The wait that a failure states.
//!
//! The most precise source comes first: `retry-after-ms`, then `retry-after`, then the body or text, then the reset
//! headers. A time in a text is relative to when it was printed, not to when it is read.

use std::time::Duration;

use super::compiled_rule::CompiledRule;
use super::normalized_text::NormalizedText;
use super::pattern_index::{PatternId, PatternMatches, TextSpan};
use super::prepared_failure::PreparedFailure;
use super::retry_after_source::RetryAfterSource;
use super::time_parsing;
use crate::failure::{Category, FailureKind, FailureLayer, Headers};
use crate::knowledge::{DiagnosisRetryAfterSpec, FailureTextSource};
use crate::time::{ClockReading, Timestamp};

/// Maximum plausible wait; longer ones are misreadings.
const MAX_WAIT: Duration = Duration::from_secs(400 * 24 * 3600);

const GROUPS: &[&str] = &[
    "wait", "seconds", "millis", "epoch", "clock", "date", "zone",
];

/// Returns the stated wait and its source.
pub(crate) fn stated_wait(
    waits: &[PatternId],
    rule: Option<&CompiledRule>,
    kind: FailureKind,
    view: &PreparedFailure<'_>,
    seen: &PatternMatches<'_>,
    now: &ClockReading,
) -> Option<(Duration, RetryAfterSource)> {
    let passes = kind.category() == Category::Transient || kind == FailureKind::QuotaExhausted;
    if !passes {
        return None;
    }
    let headers = &view.failure.headers;
    match rule.and_then(|rule| rule.spec.wait.as_ref()) {
        Some(DiagnosisRetryAfterSpec::Unstated) => return None,
        Some(DiagnosisRetryAfterSpec::Daily(at)) => {
            let (time, zone) = at.split_once(' ').unwrap_or((at, "UTC"));
            let wait = time_parsing::next_time_of_day(time, Some(zone), now)
                .and_then(|at| time_until(at, now));
            return wait.map(|wait| (wait, RetryAfterSource::Guess));
        }
        None => {}
    }
    // The rule that matched knows the meaning of its own words best.
    let in_header = |wait: Duration| (wait, RetryAfterSource::Header);
    rule.and_then(|rule| from_text(&rule.waits, view, seen, now))
        .or_else(|| from_retry_headers(headers, now).map(in_header))
        .or_else(|| from_text(waits, view, seen, now))
        .or_else(|| from_reset_headers(headers, now).map(in_header))
}

/// Returns the source of a text: a response, an agent's event, or a program's output.
fn source_of(place: &TextSpan, view: &PreparedFailure<'_>) -> RetryAfterSource {
    if place.stream == FailureTextSource::Body || view.failure.layer == FailureLayer::Api {
        return RetryAfterSource::Body;
    }
    let is_event = view.text(place.stream).is_some_and(|screen| {
        let line = &screen.lines()[screen.line_range(&place.range)];
        line.strip_prefix("data: ").unwrap_or(line).starts_with('{')
    });
    if is_event {
        RetryAfterSource::Event
    } else {
        RetryAfterSource::Screen
    }
}

/// Returns the wait if plausible. Zero is not a statement, and an excessive value is a misreading: another source may
/// be right.
fn plausible_wait(wait: Duration) -> Option<Duration> {
    (!wait.is_zero() && wait < MAX_WAIT).then_some(wait)
}

fn time_until(moment: Timestamp, now: &ClockReading) -> Option<Duration> {
    plausible_wait(moment.since(now.at))
}

fn from_retry_headers(headers: &Headers, now: &ClockReading) -> Option<Duration> {
    let millis = |name| {
        headers
            .get(name)
            .and_then(|value| value.parse::<f64>().ok())
            .and_then(|value| seconds(value / 1000.0))
    };
    millis("retry-after-ms")
        .or_else(|| millis("x-ms-retry-after-ms"))
        .or_else(|| millis("x-amz-retry-after"))
        .or_else(|| {
            headers
                .get("retry-after")
                .and_then(|value| seconds_or_date(value, now))
        })
}

fn seconds_or_date(value: &str, now: &ClockReading) -> Option<Duration> {
    match value.parse::<f64>() {
        Ok(number) => seconds(number),
        Err(_) => time_parsing::parse_duration(value)
            .and_then(plausible_wait)
            .or_else(|| time_until(time_parsing::parse_http_date(value)?, now)),
    }
}

fn seconds(value: f64) -> Option<Duration> {
    (value > 0.0)
        .then(|| Duration::try_from_secs_f64(value).ok())
        .flatten()
        .and_then(plausible_wait)
}

/// Returns the last wait stated in the text.
fn from_text(
    waits: &[PatternId],
    view: &PreparedFailure<'_>,
    seen: &PatternMatches<'_>,
    now: &ClockReading,
) -> Option<(Duration, RetryAfterSource)> {
    let found = waits
        .iter()
        .flat_map(|pattern| seen.captures(*pattern, GROUPS));
    let mut read: Vec<_> = found
        .filter_map(|(place, groups)| {
            let printed = PrintTimes::for_span(&place, view, now);
            let wait = from_groups(&groups, &printed, now)?;
            Some((place, wait))
        })
        .collect();
    read.sort_by_key(|(place, _)| place.range.start);
    read.pop()
        .map(|(place, wait)| (wait, source_of(&place, view)))
}

/// The times at which the line with the wait was printed.
struct PrintTimes {
    /// The first time: a banner that stays on the screen is relative to its first appearance.
    first: ClockReading,
    /// The last time: a countdown is restated.
    last: ClockReading,
}

impl PrintTimes {
    /// Returns when the line of this match was printed; now, if unknown.
    fn for_span(place: &TextSpan, view: &PreparedFailure<'_>, now: &ClockReading) -> Self {
        let times = Self::find(place, view);
        let (first, last) = times.unwrap_or((now.at, now.at));
        let at = |at: Timestamp| now.with_time(at.min(now.at));
        Self {
            first: at(first),
            last: at(last),
        }
    }

    fn find(place: &TextSpan, view: &PreparedFailure<'_>) -> Option<(Timestamp, Timestamp)> {
        let text = match place.stream {
            FailureTextSource::Stdout => view.failure.stdout.as_ref()?,
            FailureTextSource::Stderr => view.failure.stderr.as_ref()?,
            _ => return None,
        };
        let screen = view.text(place.stream)?;
        let line = screen.lines()[screen.line_range(&place.range)].trim();
        let parts: Vec<_> = text.timed_parts().collect();
        let found = |bytes: &[u8]| NormalizedText::new(bytes).lines().contains(line);
        let mut at = parts
            .iter()
            .filter(|(bytes, _)| found(bytes))
            .map(|(_, at)| *at);
        if let Some(first) = at.next() {
            return Some((first, at.next_back().unwrap_or(first)));
        }
        // A line that arrived in pieces was printed with the last of them.
        let pieces = parts.windows(2).find_map(|two| match two {
            [(one, _), (other, at)] => found(&[*one, *other].concat()).then_some(*at),
            _ => None,
        });
        let at = pieces.or(parts.last().map(|(_, at)| *at))?;
        Some((at, at))
    }
}

fn from_groups(
    groups: &[(&str, String)],
    printed: &PrintTimes,
    now: &ClockReading,
) -> Option<Duration> {
    let group = |name: &str| {
        groups
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, text)| text.as_str())
    };
    let number =
        |name: &str| group(name).and_then(|text| text.replace(',', "").parse::<f64>().ok());
    let (first, last) = (&printed.first, &printed.last);
    let from_last = |wait: Duration| plausible_wait(wait.saturating_sub(now.at.since(last.at)));
    group("wait")
        .and_then(time_parsing::parse_duration)
        .and_then(plausible_wait)
        .or_else(|| number("seconds").and_then(seconds))
        .or_else(|| number("millis").and_then(|millis| seconds(millis / 1000.0)))
        .and_then(from_last)
        .or_else(|| time_until(from_epoch(number("epoch")?), now))
        .or_else(|| {
            time_until(
                time_parsing::parse_date(group("date")?, group("zone"), first)?,
                now,
            )
        })
        .or_else(|| {
            time_until(
                time_parsing::next_time_of_day(group("clock")?, group("zone"), first)?,
                now,
            )
        })
}

/// Parses an epoch in seconds or milliseconds, by its size.
#[expect(
    clippy::cast_possible_truncation,
    reason = "truncating to milliseconds is intended; casts saturate"
)]
fn from_epoch(epoch: f64) -> Timestamp {
    if epoch >= 1e11 {
        Timestamp::from_millis(epoch as i64)
    } else {
        Timestamp::from_seconds(epoch as i64)
    }
}

/// Returns the wait of the exhausted bucket; reset headers state when a bucket is full again.
fn from_reset_headers(headers: &Headers, now: &ClockReading) -> Option<Duration> {
    if let Some(reset) = headers.get("anthropic-ratelimit-unified-reset") {
        return reset_value(reset, now);
    }
    let resets = headers.iter().filter(|(name, _)| {
        name.contains("ratelimit") && name.contains("reset") || name.ends_with("-reset-at")
    });
    let spent = |name: &str| {
        let left = headers.get(&name.replace("reset", "remaining"));
        let used = name
            .strip_suffix("reset-at")
            .and_then(|bucket| headers.get(&format!("{bucket}used-percent")))
            .and_then(|used| used.parse::<f64>().ok());
        left == Some("0") || used.is_some_and(|used| used >= 100.0)
    };
    let (exact, rest): (Vec<_>, Vec<_>) = resets.partition(|(name, _)| spent(name));
    let chosen = if exact.is_empty() { rest } else { exact };
    chosen
        .into_iter()
        .filter_map(|(_, value)| reset_value(value, now))
        .max()
}

fn reset_value(value: &str, now: &ClockReading) -> Option<Duration> {
    if let Ok(number) = value.parse::<f64>() {
        return if number > 1e9 {
            time_until(from_epoch(number), now)
        } else {
            seconds(number)
        };
    }
    time_parsing::parse_duration(value)
        .and_then(plausible_wait)
        .or_else(|| time_until(value.parse().ok()?, now))
}
