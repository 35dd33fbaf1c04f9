//! The circuit breaker of one upstream: after consecutive failures it is unavailable for a while, then one probe finds
//! out if it is back.
//!
//! An upstream that still answers now and then is not down: under heavy traffic consecutive failures occur by chance,
//! so the series must also have lasted for some time. The longer the series, the shorter the required silence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The settings of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CircuitBreakerSettings {
    /// The number of consecutive failures that open it; 8 by default.
    pub failures: u32,
    /// The time without a success that exactly so many failures need, in milliseconds; 15 s by default.
    ///
    /// Ten times as many failures open it after a tenth of that. If there never was a success, the failures are enough.
    #[serde(
        with = "crate::duration::millis",
        rename = "silence_ms",
        default = "default_silence"
    )]
    pub silence: Duration,
    /// The time for which it stays open at first, in milliseconds; 15 s by default.
    #[serde(with = "crate::duration::millis", rename = "cool_down_ms")]
    pub cool_down: Duration,
    /// The maximum time for which it stays open, in milliseconds; 5 min by default. It doubles with each failed probe.
    #[serde(with = "crate::duration::millis", rename = "max_cool_down_ms")]
    pub max_cool_down: Duration,
}

impl Default for CircuitBreakerSettings {
    fn default() -> Self {
        Self {
            failures: 8,
            silence: default_silence(),
            cool_down: Duration::from_secs(15),
            max_cool_down: Duration::from_secs(300),
        }
    }
}

const fn default_silence() -> Duration {
    Duration::from_secs(15)
}

/// The state of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum CircuitState {
    /// Everything is admitted.
    Closed {
        /// The consecutive failures so far.
        failures: u32,
    },
    /// Open: rejects all requests until the timestamp.
    Open {
        /// The time from which a probe is admitted.
        until: Timestamp,
        /// The number of times it has opened since it was last closed.
        #[serde(rename = "times")]
        openings: u32,
    },
    /// One probe is in progress.
    HalfOpen {
        /// The time at which the probe is considered lost and another is admitted.
        until: Timestamp,
        /// The number of times it has opened since it was last closed.
        times: u32,
    },
}

/// The circuit breaker of one upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitBreaker {
    settings: CircuitBreakerSettings,
    state: CircuitState,
    /// The time of the last success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "answered")]
    last_success: Option<Timestamp>,
}

impl CircuitBreaker {
    /// Creates a closed breaker.
    pub fn new(settings: CircuitBreakerSettings) -> Self {
        Self {
            settings,
            state: CircuitState::Closed { failures: 0 },
            last_success: None,
        }
    }

    /// Returns the current state.
    pub fn state(&self) -> CircuitState {
        self.state
    }

    /// True if a failure of this kind indicates that the upstream itself is down.
    ///
    /// Rate limits do not: they belong to one key, not to the upstream.
    pub fn is_outage(kind: FailureKind) -> bool {
        matches!(
            kind,
            FailureKind::ServerOverloaded
                | FailureKind::ServerError
                | FailureKind::Timeout
                | FailureKind::NetworkError
                | FailureKind::ServiceDown
        )
    }

    /// Returns the time until an attempt is admitted; zero if it is admitted now.
    pub fn time_until_admission(&self, now: Timestamp) -> Duration {
        match self.state {
            CircuitState::Closed { .. } => Duration::ZERO,
            CircuitState::Open { until, .. } | CircuitState::HalfOpen { until, .. } => {
                until.since(now)
            }
        }
    }

    /// Admits an attempt if possible; after the open time only the first becomes the probe.
    pub fn admit(&mut self, now: Timestamp) -> bool {
        match self.state {
            CircuitState::Closed { .. } => true,
            CircuitState::Open {
                until,
                openings: times,
            }
            | CircuitState::HalfOpen { until, times } => {
                if now < until {
                    return false;
                }
                let until = now.after(self.cool_down(times));
                self.state = CircuitState::HalfOpen { until, times };
                true
            }
        }
    }

    /// Records an attempt that succeeded, or failed in a way that shows that the upstream is up.
    pub fn on_success(&mut self, now: Timestamp) {
        self.state = CircuitState::Closed { failures: 0 };
        self.last_success = Some(now);
    }

    /// Records an attempt that says nothing about the upstream: if it was the probe, another is admitted.
    pub fn on_inconclusive(&mut self, now: Timestamp) {
        if let CircuitState::HalfOpen { until, times } = self.state {
            let until = until.min(now);
            self.state = CircuitState::HalfOpen { until, times };
        }
    }

    /// Records an attempt that failed because of the upstream.
    ///
    /// A failure that arrives while it is open belongs to an earlier attempt and is ignored.
    pub fn on_failure(&mut self, now: Timestamp) {
        match self.state {
            CircuitState::Closed { failures } => {
                let failures = failures.saturating_add(1);
                if self.should_open(failures, now) {
                    self.open(now, 1);
                } else {
                    self.state = CircuitState::Closed { failures };
                }
            }
            CircuitState::HalfOpen { times, .. } => self.open(now, times.saturating_add(1)),
            CircuitState::Open { .. } => {}
        }
    }

    fn should_open(&self, failures: u32, now: Timestamp) -> bool {
        let CircuitBreakerSettings {
            failures: least,
            silence,
            ..
        } = self.settings;
        let lasted = self.last_success.is_none_or(|answered| {
            now.since(answered).saturating_mul(failures) >= silence.saturating_mul(least)
        });
        failures >= least && lasted
    }

    fn open(&mut self, now: Timestamp, times: u32) {
        let until = now.after(self.cool_down(times));
        self.state = CircuitState::Open {
            until,
            openings: times,
        };
    }

    fn cool_down(&self, times: u32) -> Duration {
        let doublings = times.saturating_sub(1).min(16);
        self.settings
            .cool_down
            .saturating_mul(1 << doublings)
            .min(self.settings.max_cool_down)
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new(CircuitBreakerSettings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn opened() -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..8 {
            breaker.on_failure(at(0));
        }
        breaker
    }

    /// S4-35: the circuit breaker.
    #[test]
    fn consecutive_failures_open_it_and_a_success_resets_them() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..7 {
            breaker.on_failure(at(0));
        }
        breaker.on_success(at(0));
        breaker.on_failure(at(0));
        assert!(breaker.admit(at(0)));
        assert_eq!(
            opened().time_until_admission(at(0)),
            Duration::from_secs(15)
        );
        assert!(!opened().admit(at(14)));
    }

    #[test]
    fn one_probe_is_admitted_and_closes_it() {
        let mut breaker = opened();
        assert!(breaker.admit(at(15)));
        assert!(!breaker.admit(at(15)), "only one probe");
        breaker.on_success(at(16));
        assert_eq!(breaker.state(), CircuitState::Closed { failures: 0 });
    }

    #[test]
    fn each_failed_probe_doubles_the_open_time_up_to_its_limit() {
        let mut breaker = opened();
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push(breaker.time_until_admission(now).as_secs());
            now = now.after(breaker.time_until_admission(now));
            assert!(breaker.admit(now));
            breaker.on_failure(now);
        }
        assert_eq!(waits, [15, 30, 60, 120, 240, 300]);
    }

    #[test]
    fn a_lost_probe_does_not_block_forever() {
        let mut breaker = opened();
        assert!(breaker.admit(at(15)));
        assert!(breaker.admit(at(30)));
    }

    #[test]
    fn an_inconclusive_probe_admits_another() {
        let mut breaker = opened();
        assert!(breaker.admit(at(15)));
        breaker.on_inconclusive(at(16));
        assert!(breaker.admit(at(16)));
        assert!(!breaker.admit(at(16)));
    }

    /// Eighty calls a second of which 30 % succeed: series of eight failures are common there.
    #[test]
    fn a_brownout_does_not_open_it_and_an_outage_in_heavy_traffic_does_within_two_seconds() {
        let mut breaker = CircuitBreaker::default();
        let mut dice = crate::decision::SeededRng::seeded(3);
        let moments = (0..60_000).step_by(12).map(Timestamp::from_millis);
        for now in moments {
            assert!(breaker.admit(now), "{now}");
            if dice.next_draw().fraction() < 0.3 {
                breaker.on_success(now)
            } else {
                breaker.on_failure(now)
            }
        }
        breaker.on_success(at(60));
        let mut moments = (60_000..).step_by(12).map(Timestamp::from_millis);
        let opened = moments.find(|now| {
            breaker.on_failure(*now);
            !breaker.admit(*now)
        });
        assert!(opened.unwrap() < at(62), "{opened:?}");
    }

    #[test]
    fn an_older_state_without_the_silence_field_can_be_read() {
        let old = r#"{"settings":{"failures":8,"cool_down_ms":15000,"max_cool_down_ms":300000},"state":{"name":"closed","failures":2}}"#;
        let breaker: CircuitBreaker = serde_json::from_str(old).unwrap();
        assert_eq!(breaker.state(), CircuitState::Closed { failures: 2 });
    }

    #[test]
    fn the_state_round_trips_through_json() {
        let json = serde_json::to_string(&opened()).unwrap();
        assert_eq!(
            serde_json::from_str::<CircuitBreaker>(&json).unwrap(),
            opened()
        );
    }
}
