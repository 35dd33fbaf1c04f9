//! The limit resets stated by failures.

use std::time::Duration;

use crate::diagnosis::{Diagnosis, RetryAfterSource};
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The time after a reset during which the same message about it is ignored without any progress: it is an old banner,
/// or yesterday's time of day.
const STALE_FOR: Duration = Duration::from_secs(3600);
/// A time of day that has passed is parsed as tomorrow's; agents omit the seconds.
const DAY: Duration = Duration::from_secs(24 * 3600);
const MINUTES: Duration = Duration::from_secs(120);

/// A reset stated by a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatedReset {
    pub(super) until: Timestamp,
    pub(super) source: RetryAfterSource,
    /// The line that stated it.
    line: String,
}

impl StatedReset {
    /// Returns the reset that a failure states; `None` if it states none.
    pub(super) fn from_diagnosis(diagnosis: &Diagnosis, at: Timestamp) -> Option<Self> {
        let wait = diagnosis.retry_after?;
        (diagnosis.kind == FailureKind::RateLimitTimed).then(|| Self {
            until: at.after(wait),
            source: diagnosis
                .retry_after_source
                .unwrap_or(RetryAfterSource::Guess),
            line: diagnosis.evidence.line.clone(),
        })
    }

    /// True if this reset replaces an earlier one that is still in the future.
    ///
    /// Only an equal or better source makes it earlier. Screen output does not make it later: a banner that stays
    /// visible would postpone it forever. One attempt at the earlier time shows which is right.
    fn replaces(&self, before: &Self) -> bool {
        if self.until <= before.until {
            self.source >= before.source
        } else {
            self.source > before.source
                || self.source == before.source && self.source > RetryAfterSource::Screen
        }
    }

    /// True if this only repeats a reset that was waited out, without progress since.
    fn repeats(&self, before: &Self, now: Timestamp, progress: Option<Timestamp>) -> bool {
        let is_recent = now.since(before.until) < STALE_FOR;
        let is_idle = progress.is_none_or(|progress| progress <= before.until);
        let days = self.until.since(before.until);
        let is_next_day = days + MINUTES > DAY && days < DAY + MINUTES;
        let is_same = self.line == before.line || is_next_day;
        self.source <= RetryAfterSource::Event && is_recent && is_idle && is_same
    }
}

/// The limit resets stated by failures, as a fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StatedResets {
    newest: Option<StatedReset>,
    /// The effective reset of the latest failure.
    current: Option<StatedReset>,
}

impl StatedResets {
    /// Records a failure and the reset that it states.
    pub(super) fn on_failure(
        &mut self,
        diagnosis: &Diagnosis,
        at: Timestamp,
        progress: Option<Timestamp>,
    ) {
        if diagnosis.kind != FailureKind::RateLimitTimed {
            self.current = None;
            return;
        }
        let stated = StatedReset::from_diagnosis(diagnosis, at);
        self.current = match (self.newest.take(), stated) {
            (Some(before), Some(stated)) if before.until > at => {
                Some(if stated.replaces(&before) {
                    stated
                } else {
                    before
                })
            }
            (Some(before), Some(stated)) if stated.repeats(&before, at, progress) => {
                self.newest = Some(before);
                return self.current = None;
            }
            (before, None) => {
                let holds = before.clone().filter(|before| before.until > at);
                self.newest = before;
                return self.current = holds;
            }
            (_, stated) => stated,
        };
        self.newest = self.current.clone();
    }

    /// Returns the effective reset of the latest failure.
    pub(super) fn current_reset(&self) -> Option<&StatedReset> {
        self.current.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureLayer;

    fn minute(minute: i64) -> Timestamp {
        Timestamp::from_seconds(1_794_744_000 + minute * 60)
    }

    fn stating(minutes: u64, source: RetryAfterSource, line: &str) -> Diagnosis {
        let kind = FailureKind::RateLimitTimed;
        let mut diagnosis = Diagnosis::from_observation(kind, FailureLayer::Agent, "test", line);
        diagnosis.evidence.line = line.to_owned();
        diagnosis.retry_after = Some(Duration::from_secs(minutes * 60));
        diagnosis.retry_after_source = Some(source);
        diagnosis
    }

    /// Returns the effective reset after one source stated 60 minutes, and another source another time 10 minutes
    /// later.
    fn then(before: RetryAfterSource, source: RetryAfterSource, minutes: u64) -> Timestamp {
        let mut resets = StatedResets::default();
        resets.on_failure(&stating(60, before, "before"), minute(0), None);
        resets.on_failure(&stating(minutes, source, "after"), minute(10), None);
        resets.current_reset().unwrap().until
    }

    #[test]
    fn only_an_equal_or_better_source_makes_a_reset_earlier() {
        for before in RetryAfterSource::ALL {
            for source in RetryAfterSource::ALL {
                let expected = if source >= before {
                    minute(20)
                } else {
                    minute(60)
                };
                assert_eq!(then(before, source, 10), expected, "{before:?} {source:?}");
            }
        }
    }

    #[test]
    fn a_repeated_screen_banner_does_not_postpone_a_reset() {
        use RetryAfterSource::{Body, Guess, Header, Screen};
        for (before, source) in [(Screen, Screen), (Guess, Guess), (Header, Screen)] {
            assert_eq!(
                then(before, source, 300),
                minute(60),
                "{before:?} {source:?}"
            );
        }
        for (before, source) in [(Screen, Header), (Screen, Body), (Header, Header)] {
            assert_eq!(
                then(before, source, 300),
                minute(310),
                "{before:?} {source:?}"
            );
        }
    }

    #[test]
    fn a_waited_out_message_is_ignored_without_progress() {
        let banner = stating(60, RetryAfterSource::Screen, "resets in 1 hour");
        let mut resets = StatedResets::default();
        resets.on_failure(&banner, minute(0), None);
        resets.on_failure(&banner, minute(61), None);
        assert_eq!(resets.current_reset(), None);
        // The same holds if they are read once more.
        resets.on_failure(&banner, minute(70), Some(minute(55)));
        assert_eq!(resets.current_reset(), None);
        resets.on_failure(&banner, minute(80), Some(minute(75)));
        assert_eq!(resets.current_reset().unwrap().until, minute(140));
        // A response of the API is not an old banner.
        let header = stating(60, RetryAfterSource::Header, "retry-after");
        resets.on_failure(&header, minute(140), None);
        resets.on_failure(&header, minute(201), None);
        assert_eq!(resets.current_reset().unwrap().until, minute(261));
    }

    /// "resets 3pm", read a minute after 3 pm, does not mean tomorrow.
    #[test]
    fn a_waited_out_time_of_day_does_not_mean_tomorrow() {
        let at = |minutes| stating(minutes, RetryAfterSource::Event, &format!("{minutes}"));
        let mut resets = StatedResets::default();
        resets.on_failure(&at(60), minute(0), None);
        resets.on_failure(&at(24 * 60 - 1), minute(61), None);
        assert_eq!(resets.current_reset(), None);
    }

    #[test]
    fn a_limit_without_a_reset_keeps_the_one_stated_before() {
        let mut resets = StatedResets::default();
        resets.on_failure(&stating(60, RetryAfterSource::Body, "x"), minute(0), None);
        let mut silent = stating(1, RetryAfterSource::Body, "x");
        silent.retry_after = None;
        resets.on_failure(&silent, minute(10), None);
        assert_eq!(resets.current_reset().unwrap().until, minute(60));
        resets.on_failure(&silent, minute(61), None);
        assert_eq!(resets.current_reset(), None);
    }
}
