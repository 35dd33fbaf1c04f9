//! Keeps the load on an overloaded upstream slightly above its throughput.
//!
//! Normally it only counts, in short windows, and learns the baseline. When too many calls fail it limits the
//! [rate](super::rate); when failures have stopped and no call waits any more, it removes the limit.

use std::time::Duration;

use super::overload_limits::OverloadLimits;
use super::upstream_load::{BaselineLoad, LoadSample};
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The minimum length of a window, in milliseconds.
const MIN_WINDOW_MILLIS: i64 = 500;
/// The maximum length, when few calls end.
const MAX_WINDOW_MILLIS: i64 = 2000;
/// Number of finished calls that ends a window early.
const ENOUGH_CALLS: u32 = 16;
/// Number of failures that, with a share this far above the baseline, starts the limit.
const MIN_FAILURES: u32 = 8;
const EXCESS_FAILURE_SHARE: f64 = 0.25;
/// Time without a call after which everything is forgotten, in milliseconds.
const FORGET_AFTER_MILLIS: i64 = 60_000;
/// The highest share of failures that can become the baseline.
const MAX_BASELINE_LOSS: f64 = 0.6;
/// Multiple of the usual duration from which calls are slow.
const SLOW_FACTOR: f64 = 1.7;
/// The minimum restart rate, per millisecond.
const MIN_RESTART_RATE: f64 = 0.002;
/// The restart rate without a baseline: slow enough to prevent a thundering herd, fast enough for windows to be
/// meaningful; otherwise recovery would take very long.
const DEFAULT_RESTART_RATE: f64 = 0.05;

/// Counts finished calls and limits sending when needed. Rates are in calls per millisecond.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RateController {
    since: i64,
    counts: WindowCounts,
    baseline: BaselineLoad,
    rate: Option<OverloadLimits>,
}

/// The counts of the current window.
#[derive(Debug, Clone, Default, PartialEq)]
struct WindowCounts {
    sent: u32,
    succeeded: u32,
    failed: u32,
    /// Failures by timeout.
    timed_out: u32,
    /// The maximum number of calls in flight.
    in_flight: u32,
    /// Total duration of the successful calls, in milliseconds.
    total_duration: f64,
}

impl RateController {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            since: now.millis(),
            counts: WindowCounts::default(),
            baseline: BaselineLoad::default(),
            rate: None,
        }
    }

    /// Returns until when calls are held; `None` if one may go.
    pub(super) fn wait_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.evaluate_window(now);
        self.rate.as_mut()?.wait_until(now)
    }

    /// Returns true if this many calls in flight are too many at present.
    pub(super) fn is_full(&mut self, in_flight: u32) -> bool {
        let pace = self.rate.as_mut();
        pace.is_some_and(|pace| pace.is_full(in_flight))
    }

    /// Records a sent call and the number of calls in flight with it.
    pub(super) fn on_send(&mut self, in_flight: u32, now: Timestamp) {
        self.counts.sent += 1;
        self.counts.in_flight = self.counts.in_flight.max(in_flight);
        if let Some(pace) = &mut self.rate {
            pace.on_send(now);
        }
    }

    /// Records a successful call and its duration.
    pub(super) fn on_success(&mut self, took: Duration, now: Timestamp) {
        self.counts.succeeded += 1;
        self.counts.total_duration += took.as_millis() as f64;
        self.evaluate_window(now);
    }

    /// Records a failed call, possibly caused by load.
    pub(super) fn on_failure(&mut self, kind: FailureKind, now: Timestamp) {
        self.counts.failed += 1;
        self.counts.timed_out += u32::from(kind == FailureKind::Timeout);
        self.evaluate_window(now);
    }

    /// Restarts with a share of the baseline rate after a pause.
    pub(super) fn restart(&mut self, share: f64, now: Timestamp) {
        let rate = match self.baseline.rate {
            0.0 => DEFAULT_RESTART_RATE,
            usual => (usual * share).max(MIN_RESTART_RATE),
        };
        self.rate = Some(OverloadLimits::new(rate, &self.baseline, now));
        self.begin_window(now.millis());
    }

    /// Returns true if it limits calls.
    pub(super) fn is_limiting(&self) -> bool {
        self.rate.is_some()
    }

    /// Returns the rate in calls per second, while limited.
    pub(super) fn per_second(&self) -> Option<f64> {
        self.rate.as_ref().map(OverloadLimits::per_second)
    }

    fn evaluate_window(&mut self, now: Timestamp) {
        let passed = now.millis() - self.since;
        let ended = self.counts.succeeded + self.counts.failed;
        if passed < MIN_WINDOW_MILLIS || (passed < MAX_WINDOW_MILLIS && ended < ENOUGH_CALLS) {
            return;
        }
        let seen = self.counts.sample_over(passed as f64);
        match &mut self.rate {
            None => self.evaluate_unlimited(&seen, now),
            Some(pace) => {
                if passed > FORGET_AFTER_MILLIS || !pace.adjust(&seen, &mut self.baseline) {
                    self.rate = None;
                }
            }
        }
        self.begin_window(now.millis());
    }

    fn begin_window(&mut self, now: i64) {
        self.since = now;
        self.counts = WindowCounts::default();
    }

    fn evaluate_unlimited(&mut self, seen: &LoadSample, now: Timestamp) {
        let too_many = seen.loss > self.baseline.loss + EXCESS_FAILURE_SHARE;
        if self.counts.failed >= MIN_FAILURES && too_many {
            self.rate = Some(OverloadLimits::from_sample(seen, &self.baseline, now));
        } else if seen.ended > 0 && !too_many {
            // A time of hardly any calls says nothing about the baseline.
            self.baseline.learn(seen);
        }
    }
}

impl WindowCounts {
    fn sample_over(&self, passed: f64) -> LoadSample {
        let ended = self.succeeded + self.failed;
        // Long calls may not have ended yet: those that have not failed will succeed.
        let through = self.succeeded.max(self.sent.saturating_sub(self.failed));
        LoadSample {
            throughput: f64::from(through) / passed,
            sent: f64::from(self.sent) / passed,
            loss: f64::from(self.failed) / f64::from(ended.max(1)),
            ended,
            timed_out: self.timed_out,
            in_flight: self.in_flight,
            average_duration: (self.succeeded > 0)
                .then(|| self.total_duration / f64::from(self.succeeded)),
        }
    }
}

impl BaselineLoad {
    fn learn(&mut self, seen: &LoadSample) {
        if seen.ended >= ENOUGH_CALLS {
            self.loss += 0.1 * (seen.loss.min(MAX_BASELINE_LOSS) - self.loss);
        }
        let weight = if seen.sent > self.rate { 0.5 } else { 0.1 };
        self.rate += weight * (seen.sent - self.rate);
        move_slowly(&mut self.in_flight, seen.in_flight.into());
        if let Some(took) = seen.average_duration {
            move_slowly(&mut self.average_duration, took);
        }
    }

    /// Sets the share of failures that do not depend on the load.
    pub(super) fn set_loss(&mut self, loss: f64) {
        self.loss = loss.min(MAX_BASELINE_LOSS);
    }

    /// Returns true if failures exceed the baseline by no more than chance.
    pub(super) fn is_clean(&self, seen: &LoadSample) -> bool {
        let spread = (self.loss * (1.0 - self.loss) / f64::from(seen.ended.max(1))).sqrt();
        seen.loss <= self.loss + spread.max(0.05)
    }

    /// Returns true if calls are too slow to have more of them in flight.
    pub(super) fn is_slow(&self, seen: &LoadSample) -> bool {
        seen.average_duration
            .is_none_or(|took| took > self.average_duration * SLOW_FACTOR)
    }

    /// Lowers the baseline loss if fewer calls fail; raises the baseline duration if calls stay slow for minutes.
    pub(super) fn learn_while_pacing(&mut self, seen: &LoadSample) {
        if seen.loss < self.loss {
            self.loss += 0.3 * (seen.loss - self.loss);
        }
        if let Some(took) = seen.average_duration {
            self.average_duration +=
                0.005 * (took.min(self.average_duration * SLOW_FACTOR) - self.average_duration);
        }
    }
}

/// Moves slowly: while an upstream gets slow, calls pile up before the first of them fails.
fn move_slowly(usual: &mut f64, seen: f64) {
    let weight = if *usual > 0.0 { 0.05 } else { 1.0 };
    *usual += weight * (seen - *usual);
}
