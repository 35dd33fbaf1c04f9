//! How an agent's own client goes about a call that fails, measured without anybody between it and its API.

use std::time::Duration;

use serde::Deserialize;

/// How an agent's own client goes about a call that fails. Where versions differ, each has its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientRetries {
    /// The first version for which it holds; none for all older ones.
    pub from: Option<String>,
    /// The first version for which it does not hold any more; none for all newer ones.
    pub before: Option<String>,
    /// The waits between its tries while its API is down, in seconds: one less than its tries.
    pub waits: Vec<f64>,
    /// How often it asks in all for an answer that breaks off each time; as often as while its API is down where it is not
    /// known.
    pub broken_streams: Option<u32>,
    /// How long it waits for an answer to begin.
    #[serde(deserialize_with = "crate::duration::text::deserialize")]
    pub timeout: Duration,
    /// How it is told that a stream cannot be completed.
    pub stream_error: StreamErrorSignal,
}

/// How a client is told that a stream cannot be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamErrorSignal {
    /// By an error in the stream, as its protocol has it.
    #[default]
    Event,
    /// By the end of the connection: it would take a stream that ends properly for a whole one, or does not try again after
    /// an error in it.
    Disconnect,
}

impl Default for ClientRetries {
    /// What most do: ten more tries within three minutes.
    fn default() -> Self {
        Self {
            from: None,
            before: None,
            waits: vec![0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0, 32.0],
            broken_streams: None,
            timeout: Duration::from_secs(600),
            stream_error: StreamErrorSignal::Event,
        }
    }
}

impl ClientRetries {
    /// How long it goes on by itself, from its first try to its last.
    pub fn total_time(&self) -> Duration {
        self.sent_at(self.waits.len())
    }

    /// The soonest that the try of a number (from 1) may be made on its behalf, counted from the first, so that no more have
    /// been made at any time than it would have made by itself; one more where it may be a try ahead. None once it would
    /// have given up.
    pub fn earliest_attempt(&self, number: u32, is_ahead: bool) -> Option<Duration> {
        let own = number.saturating_sub(1 + u32::from(is_ahead));
        let before = usize::try_from(own).ok()?;
        (before <= self.waits.len()).then(|| self.sent_at(before))
    }

    /// Whether it would ask once more by itself after so many answers have broken off; one more where it may be a try ahead.
    pub fn retries_broken_stream(&self, streams: u32, is_ahead: bool) -> bool {
        let tries = u32::try_from(self.waits.len() + 1).unwrap_or(u32::MAX);
        let most = self.broken_streams.unwrap_or(tries);
        streams < most.saturating_add(u32::from(is_ahead))
    }

    /// When it sends its try after so many waits.
    fn sent_at(&self, waits: usize) -> Duration {
        let seconds: f64 = self.waits.iter().take(waits).sum();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Whether it holds for a version; for one that is not known, the newest does.
    pub(super) fn applies_to(&self, version: Option<&str>) -> bool {
        let Some(version) = version.map(version_numbers) else {
            return self.before.is_none();
        };
        let is_old = self
            .from
            .as_deref()
            .is_some_and(|from| version < version_numbers(from));
        let is_new = self
            .before
            .as_deref()
            .is_some_and(|before| version >= version_numbers(before));
        !is_old && !is_new
    }
}

/// The numbers of a version, such as 2, 1 and 325.
fn version_numbers(version: &str) -> Vec<u64> {
    let parts = version.split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_break_off_are_asked_for_as_often_as_it_would_and_once_more() {
        let mut own = ClientRetries {
            waits: vec![1.0; 9],
            broken_streams: Some(2),
            ..ClientRetries::default()
        };
        assert!(own.retries_broken_stream(1, false) && !own.retries_broken_stream(2, false));
        assert!(own.retries_broken_stream(2, true) && !own.retries_broken_stream(3, true));
        own.broken_streams = None;
        assert!(own.retries_broken_stream(9, false) && !own.retries_broken_stream(10, false));
    }

    #[test]
    fn no_more_tries_than_it_would_make_and_one_where_it_may_be_ahead() {
        let own = ClientRetries {
            waits: vec![1.0, 2.0, 4.0],
            ..ClientRetries::default()
        };
        let soonest = |is_ahead: bool| {
            let own = &own;
            let all = (1..=6).map(move |number| own.earliest_attempt(number, is_ahead));
            all.map(|time| time.map(|time| time.as_secs()))
        };
        let ahead: Vec<_> = soonest(true).collect();
        assert_eq!(ahead, [Some(0), Some(0), Some(1), Some(3), Some(7), None]);
        let own_times: Vec<_> = soonest(false).collect();
        assert_eq!(own_times, [Some(0), Some(1), Some(3), Some(7), None, None]);
        assert_eq!(own.total_time().as_secs(), 7);
    }

    #[test]
    fn versions_choose() {
        let between = ClientRetries {
            from: Some("1.9".into()),
            before: Some("2.1.200".into()),
            ..ClientRetries::default()
        };
        for (version, holds) in [
            (Some("1.8.9"), false),
            (Some("1.9"), true),
            (Some("2.1.199-beta.1"), true),
            (Some("2.1.200"), false),
            (Some("2.1.1000"), false),
            (None, false),
        ] {
            assert_eq!(between.applies_to(version), holds, "{version:?}");
        }
        assert!(ClientRetries::default().applies_to(None));
    }
}
