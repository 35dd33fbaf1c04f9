//! States a wait in a refusal: in headers, in its message, or in its details.

use std::time::Duration;

use unstuck_core::Timestamp;

use super::{Protocol, RetryAfterFormat};

/// A wait and the form in which it is stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryAfterHint {
    pub(crate) form: RetryAfterFormat,
    pub(crate) time: Duration,
    pub(crate) now: Timestamp,
}

/// The headers of an answer, in order.
pub(crate) type Headers = Vec<(&'static str, String)>;

impl RetryAfterHint {
    /// Returns a plain `retry-after` in seconds.
    pub(crate) fn seconds(seconds: u64) -> Self {
        Self {
            form: RetryAfterFormat::Seconds,
            time: Duration::from_secs(seconds),
            now: Timestamp::from_millis(0),
        }
    }

    fn deadline(self) -> Timestamp {
        self.now.after(self.time)
    }

    /// Returns the headers that state it.
    pub(super) fn headers(self, protocol: Protocol) -> Headers {
        let whole = whole_seconds(self.time);
        let both = |value: String| {
            vec![
                ("x-ratelimit-reset-requests", value.clone()),
                ("x-ratelimit-reset-tokens", value),
            ]
        };
        match self.form {
            RetryAfterFormat::Seconds => vec![("retry-after", whole.to_string())],
            RetryAfterFormat::Fractional => {
                vec![("retry-after", self.time.as_secs_f64().to_string())]
            }
            RetryAfterFormat::HttpDate => vec![("retry-after", http_date(self.deadline()))],
            RetryAfterFormat::Millis => vec![("retry-after-ms", self.time.as_millis().to_string())],
            RetryAfterFormat::Duration => both(go_duration(self.time)),
            RetryAfterFormat::BareSeconds => both(whole.to_string()),
            RetryAfterFormat::EpochSeconds => vec![(
                "x-ratelimit-reset",
                epoch_seconds(self.deadline()).to_string(),
            )],
            RetryAfterFormat::EpochMillis => {
                vec![("x-ratelimit-reset", self.deadline().millis().to_string())]
            }
            RetryAfterFormat::Rfc3339 if protocol == Protocol::Anthropic => {
                let end = rfc3339(self.deadline());
                vec![
                    ("anthropic-ratelimit-requests-limit", "50".to_owned()),
                    ("anthropic-ratelimit-requests-remaining", "0".to_owned()),
                    ("anthropic-ratelimit-requests-reset", end),
                ]
            }
            RetryAfterFormat::Rfc3339 => vec![("x-ratelimit-reset", rfc3339(self.deadline()))],
            RetryAfterFormat::Body | RetryAfterFormat::Message | RetryAfterFormat::None => {
                Vec::new()
            }
        }
    }

    /// Returns the wait for a message, such as `1.5s`, or `None` if the message does not state it.
    pub(super) fn in_message(self) -> Option<String> {
        matches!(
            self.form,
            RetryAfterFormat::Body | RetryAfterFormat::Message
        )
        .then(|| go_duration(self.time))
    }

    /// Returns the wait for Gemini's RetryInfo, such as `1.5s`, or `None` if it has none.
    pub(super) fn in_details(self) -> Option<String> {
        (self.form == RetryAfterFormat::Body).then(|| format!("{}s", self.time.as_secs_f64()))
    }
}

/// Returns seconds, rounded up so that a retry after this wait is not too early.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Returns seconds since the epoch, rounded up.
fn epoch_seconds(moment: Timestamp) -> i64 {
    moment.millis().saturating_add(999).div_euclid(1000)
}

/// Returns a timestamp rounded up to the second, as in rate limit headers.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    Timestamp::from_seconds(epoch_seconds(moment)).to_string()
}

fn http_date(moment: Timestamp) -> String {
    let since_epoch = Duration::from_secs(u64::try_from(epoch_seconds(moment)).unwrap_or_default());
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + since_epoch)
}

/// Returns a duration in Go's format: `12ms`, `1.5s`, `2m59.56s`, `1h2m0s`.
pub(crate) fn go_duration(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{}ms", time.as_millis());
    }
    let (hours, minutes) = (time.as_secs() / 3600, time.as_secs() / 60 % 60);
    let seconds = (time.as_millis() % 60_000) as f64 / 1000.0;
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_format_of_openai() {
        let written = |millis| go_duration(Duration::from_millis(millis));
        assert_eq!(written(12), "12ms");
        assert_eq!(written(1_500), "1.5s");
        assert_eq!(written(360_000), "6m0s");
        assert_eq!(written(179_560), "2m59.56s");
        assert_eq!(written(3_720_000), "1h2m0s");
    }

    #[test]
    fn whole_seconds_are_rounded_up() {
        let wait = |form| RetryAfterHint {
            form,
            time: Duration::from_millis(1_200),
            now: Timestamp::from_millis(784_111_776_500),
        };
        let header = |form| wait(form).headers(Protocol::Chat)[0].1.clone();
        assert_eq!(header(RetryAfterFormat::Seconds), "2");
        assert_eq!(header(RetryAfterFormat::Fractional), "1.2");
        assert_eq!(
            header(RetryAfterFormat::HttpDate),
            "Sun, 06 Nov 1994 08:49:38 GMT"
        );
        assert_eq!(header(RetryAfterFormat::Millis), "1200");
        assert_eq!(header(RetryAfterFormat::EpochSeconds), "784111778");
        assert_eq!(header(RetryAfterFormat::EpochMillis), "784111777700");
        assert_eq!(header(RetryAfterFormat::Rfc3339), "1994-11-06T08:49:38Z");
    }
}
