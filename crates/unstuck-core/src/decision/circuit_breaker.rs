//! The circuit breaker of one upstream: after several failures in a row nobody asks it again for a while, then
//! one probe finds out whether it is back.
//!
//! An upstream that still answers now and then is not dead: in much traffic a row of failures comes by chance, so the row
//! must also have lasted. The longer the row, the shorter the silence that is enough.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Kind;
use crate::time::Timestamp;

/// When a breaker opens and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CircuitBreakerSettings {
    /// How many failures in a row open it; 8 by default.
    pub failures: u32,
    /// How long a row of just so many must have gone without an answer, in milliseconds; 15 s by default.
    ///
    /// A row of ten times as many opens it after a tenth of that. Where there never was an answer, the row is enough.
    #[serde(
        with = "crate::duration::millis",
        rename = "silence_ms",
        default = "default_silence"
    )]
    pub silence: Duration,
    /// How long it stays open the first time, in milliseconds; 15 s by default.
    #[serde(with = "crate::duration::millis", rename = "cool_down_ms")]
    pub cool_down: Duration,
    /// The longest that it stays open, in milliseconds; 5 min by default. It doubles with each failed probe.
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

/// What a breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum CircuitState {
    /// Everything.
    Closed {
        /// Failures in a row so far.
        failures: u32,
    },
    /// Nothing until the moment.
    Open {
        /// When a probe may go through.
        until: Timestamp,
        /// How often it has opened since it was last closed.
        #[serde(rename = "times")]
        openings: u32,
    },
    /// One probe is on its way.
    HalfOpen {
        /// When the probe counts as lost and another may go.
        until: Timestamp,
        /// How often it has opened since it was last closed.
        times: u32,
    },
}

/// The breaker of one upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitBreaker {
    settings: CircuitBreakerSettings,
    state: CircuitState,
    /// When it last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "answered")]
    last_success: Option<Timestamp>,
}

impl CircuitBreaker {
    /// A closed breaker.
    pub fn new(settings: CircuitBreakerSettings) -> Self {
        Self {
            settings,
            state: CircuitState::Closed { failures: 0 },
            last_success: None,
        }
    }

    /// What it lets through at present.
    pub fn state(&self) -> CircuitState {
        self.state
    }

    /// Whether a failure of this kind says that the upstream itself is down.
    ///
    /// Rate limits do not: they belong to one key, not to the upstream.
    pub fn counts_as_outage(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::ServerOverloaded
                | Kind::ServerError
                | Kind::Timeout
                | Kind::NetworkError
                | Kind::ServiceDown
        )
    }

    /// How long until a try may go through; nothing if it may go now.
    pub fn time_until_admission(&self, now: Timestamp) -> Duration {
        match self.state {
            CircuitState::Closed { .. } => Duration::ZERO,
            CircuitState::Open { until, .. } | CircuitState::HalfOpen { until, .. } => {
                until.since(now)
            }
        }
    }

    /// Lets a try through if it may go; after an open time only the first becomes the probe.
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

    /// Takes note that a try succeeded, or failed in a way that shows that the upstream is up.
    pub fn on_success(&mut self, now: Timestamp) {
        self.state = CircuitState::Closed { failures: 0 };
        self.last_success = Some(now);
    }

    /// Takes note that a try ended without saying anything about the upstream: if it was the probe, another may go.
    pub fn on_inconclusive(&mut self, now: Timestamp) {
        if let CircuitState::HalfOpen { until, times } = self.state {
            let until = until.min(now);
            self.state = CircuitState::HalfOpen { until, times };
        }
    }

    /// Takes note that a try failed because of the upstream.
    ///
    /// A failure that arrives while it is open belongs to a try from before, and changes nothing.
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
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
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
    fn one_probe_goes_through_and_closes_it() {
        let mut breaker = opened();
        assert!(breaker.admit(at(15)));
        assert!(!breaker.admit(at(15)), "only one probe");
        breaker.on_success(at(16));
        assert_eq!(breaker.state(), CircuitState::Closed { failures: 0 });
    }

    #[test]
    fn each_failed_probe_doubles_the_cool_down_up_to_its_limit() {
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
    fn a_lost_probe_does_not_block_for_ever() {
        let mut breaker = opened();
        assert!(breaker.admit(at(15)));
        assert!(breaker.admit(at(30)));
    }

    #[test]
    fn a_probe_that_says_nothing_makes_room_for_another() {
        let mut breaker = opened();
        assert!(breaker.admit(at(15)));
        breaker.on_inconclusive(at(16));
        assert!(breaker.admit(at(16)));
        assert!(!breaker.admit(at(16)));
    }

    /// Eighty calls a second of which three in ten succeed: rows of eight failures are common there.
    #[test]
    fn a_brownout_does_not_open_it_and_an_outage_in_much_traffic_does_within_two_seconds() {
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
    fn what_was_stored_before_there_was_a_silence_is_still_read() {
        let old = r#"{"settings":{"failures":8,"cool_down_ms":15000,"max_cool_down_ms":300000},"state":{"name":"closed","failures":2}}"#;
        let breaker: CircuitBreaker = serde_json::from_str(old).unwrap();
        assert_eq!(breaker.state(), CircuitState::Closed { failures: 2 });
    }

    #[test]
    fn it_can_be_stored() {
        let json = serde_json::to_string(&opened()).unwrap();
        assert_eq!(
            serde_json::from_str::<CircuitBreaker>(&json).unwrap(),
            opened()
        );
    }
}
