//! Retry behavior of an agent's own client, measured without anything between it and its API.

use std::time::Duration;

use serde::Deserialize;

/// The retry behavior of an agent's own client. Versions that differ have separate entries.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientRetryBehavior {
    /// The first version it applies to; none for all older ones.
    pub from: Option<String>,
    /// The first version it no longer applies to; none for all newer ones.
    pub before: Option<String>,
    /// The delays between attempts while the API is down, in seconds: one fewer than the attempts.
    pub waits: Vec<f64>,
    /// The number of attempts for a response that breaks off each time; if unknown, the same as while the API is down.
    pub broken_streams: Option<u32>,
    /// How long it waits for a response to begin.
    #[serde(deserialize_with = "crate::duration::text::deserialize")]
    pub timeout: Duration,
    /// How a broken stream must be signaled to it.
    pub stream_error: BrokenStreamSignal,
}

/// How a broken stream is signaled to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrokenStreamSignal {
    /// An error event of the protocol.
    #[default]
    Event,
    /// A closed connection: the client would take a stream that ends properly for a complete one, or does not retry
    /// after an error event.
    Disconnect,
}

impl Default for ClientRetryBehavior {
    /// Returns the most common behavior: ten retries within three minutes.
    fn default() -> Self {
        Self {
            from: None,
            before: None,
            waits: vec![0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0, 32.0],
            broken_streams: None,
            timeout: Duration::from_secs(600),
            stream_error: BrokenStreamSignal::Event,
        }
    }
}

impl ClientRetryBehavior {
    /// Returns the time from its first to its last attempt.
    pub fn total_time(&self) -> Duration {
        self.sent_at(self.waits.len())
    }

    /// Returns the earliest time of an attempt (numbered from 1) on its behalf, relative to the first, so that there
    /// are never more attempts than it would make itself; one more if it may be one ahead. None once it would have
    /// given up.
    pub fn earliest_attempt(&self, number: u32, is_ahead: bool) -> Option<Duration> {
        let own = number.saturating_sub(1 + u32::from(is_ahead));
        let before = usize::try_from(own).ok()?;
        (before <= self.waits.len()).then(|| self.sent_at(before))
    }

    /// Returns true if it would retry after this number of broken streams; one more if it may be one attempt ahead.
    pub fn retries_broken_stream(&self, streams: u32, is_ahead: bool) -> bool {
        let tries = u32::try_from(self.waits.len() + 1).unwrap_or(u32::MAX);
        let most = self.broken_streams.unwrap_or(tries);
        streams < most.saturating_add(u32::from(is_ahead))
    }

    /// Returns when it sends the attempt after this number of delays.
    fn sent_at(&self, waits: usize) -> Duration {
        let seconds: f64 = self.waits.iter().take(waits).sum();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Returns true if it applies to a version; the newest applies to unknown versions.
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

/// Returns the numbers of a version, such as 2, 1 and 325.
fn version_numbers(version: &str) -> Vec<u64> {
    let parts = version.split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_streams_are_retried_as_often_as_the_client_would_and_once_more() {
        let mut own = ClientRetryBehavior {
            waits: vec![1.0; 9],
            broken_streams: Some(2),
            ..ClientRetryBehavior::default()
        };
        assert!(own.retries_broken_stream(1, false) && !own.retries_broken_stream(2, false));
        assert!(own.retries_broken_stream(2, true) && !own.retries_broken_stream(3, true));
        own.broken_streams = None;
        assert!(own.retries_broken_stream(9, false) && !own.retries_broken_stream(10, false));
    }

    #[test]
    fn attempts_never_exceed_those_of_the_client_except_one_ahead() {
        let own = ClientRetryBehavior {
            waits: vec![1.0, 2.0, 4.0],
            ..ClientRetryBehavior::default()
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
    fn version_selects_the_retry_behavior() {
        let between = ClientRetryBehavior {
            from: Some("1.9".into()),
            before: Some("2.1.200".into()),
            ..ClientRetryBehavior::default()
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
        assert!(ClientRetryBehavior::default().applies_to(None));
    }
}
