//! Keeps what is sent to an upstream that is overloaded a little above what gets through.
//!
//! While nothing is wrong it only counts, in short windows, and learns what is usual. When too many calls fail it begins
//! to [pace](super::pace); when failures have stopped and nobody waits any more, it lets go.

use std::time::Duration;

use super::load_window::{BaselineLoad, LoadSample};
use super::rate::SendRate;
use crate::failure::Kind;
use crate::time::Timestamp;

/// The shortest time after which a window is judged, in milliseconds.
const MIN_WINDOW_MILLIS: i64 = 500;
/// The longest, where few calls end.
const MAX_WINDOW_MILLIS: i64 = 2000;
/// So many calls that ended make a window worth judging early.
const ENOUGH_CALLS: u32 = 16;
/// So many failures, and a share so much above the usual, begin the pacing.
const MIN_FAILURES: u32 = 8;
const EXCESS_FAILURE_SHARE: f64 = 0.25;
/// Whatever was is forgotten after so long without a call, in milliseconds.
const FORGET_AFTER_MILLIS: i64 = 60_000;
/// The share of failures that is never taken for usual.
const MAX_BASELINE_LOSS: f64 = 0.6;
/// Calls that take so many times as long as usual are slow.
const SLOW_FACTOR: f64 = 1.7;
/// The rate at least with which calls begin again, per millisecond.
const MIN_RESTART_RATE: f64 = 0.002;
/// The same where nothing is known of what is usual: slow enough that not all wake at once, and so fast that windows show
/// something, or it would take very long to get away from.
const DEFAULT_RESTART_RATE: f64 = 0.05;

/// Counts what ends, and limits what goes when it must. Rates are in calls per millisecond.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RateController {
    since: i64,
    counts: WindowCounts,
    baseline: BaselineLoad,
    rate: Option<SendRate>,
}

/// What happened in a window so far.
#[derive(Debug, Clone, Default, PartialEq)]
struct WindowCounts {
    sent: u32,
    succeeded: u32,
    failed: u32,
    /// Those that failed since they took too long, among them.
    timed_out: u32,
    /// The most that were on their way.
    in_flight: u32,
    /// How long those that got through took together, in milliseconds.
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

    /// Until when nobody may go; `None` if one may.
    pub(super) fn wait_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.evaluate_window(now);
        self.rate.as_mut()?.wait_until(now)
    }

    /// Whether so many on their way are too many for now.
    pub(super) fn is_full(&mut self, in_flight: u32) -> bool {
        let pace = self.rate.as_mut();
        pace.is_some_and(|pace| pace.is_full(in_flight))
    }

    /// Takes note that one goes, and how many are on their way with it.
    pub(super) fn on_send(&mut self, in_flight: u32, now: Timestamp) {
        self.counts.sent += 1;
        self.counts.in_flight = self.counts.in_flight.max(in_flight);
        if let Some(pace) = &mut self.rate {
            pace.on_send(now);
        }
    }

    /// Takes note that one got through, and how long it took.
    pub(super) fn on_success(&mut self, took: Duration, now: Timestamp) {
        self.counts.succeeded += 1;
        self.counts.total_duration += took.as_millis() as f64;
        self.evaluate_window(now);
    }

    /// Takes note that one failed because of the load, perhaps.
    pub(super) fn on_failure(&mut self, kind: Kind, now: Timestamp) {
        self.counts.failed += 1;
        self.counts.timed_out += u32::from(kind == Kind::Timeout);
        self.evaluate_window(now);
    }

    /// Begins anew with a share of what is usual, from a moment on: after a time in which nothing could go.
    pub(super) fn restart(&mut self, share: f64, now: Timestamp) {
        let rate = match self.baseline.rate {
            0.0 => DEFAULT_RESTART_RATE,
            usual => (usual * share).max(MIN_RESTART_RATE),
        };
        self.rate = Some(SendRate::new(rate, &self.baseline, now));
        self.begin_window(now.millis());
    }

    /// Whether it limits what goes.
    pub(super) fn is_limiting(&self) -> bool {
        self.rate.is_some()
    }

    /// Calls per second, while that is limited.
    pub(super) fn per_second(&self) -> Option<f64> {
        self.rate.as_ref().map(SendRate::per_second)
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
            self.rate = Some(SendRate::from_sample(seen, &self.baseline, now));
        } else if seen.ended > 0 && !too_many {
            // A time in which hardly anything could go says nothing of what is usual.
            self.baseline.learn(seen);
        }
    }
}

impl WindowCounts {
    fn sample_over(&self, passed: f64) -> LoadSample {
        let ended = self.succeeded + self.failed;
        // Of long calls none may have ended yet: those that did not fail will get through.
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

    /// So much fails whatever the load.
    pub(super) fn set_loss(&mut self, loss: f64) {
        self.loss = loss.min(MAX_BASELINE_LOSS);
    }

    /// Whether hardly more failed than usual, but for chance.
    pub(super) fn is_clean(&self, seen: &LoadSample) -> bool {
        let spread = (self.loss * (1.0 - self.loss) / f64::from(seen.ended.max(1))).sqrt();
        seen.loss <= self.loss + spread.max(0.05)
    }

    /// Whether calls take so long that no more of them should be on their way.
    pub(super) fn is_slow(&self, seen: &LoadSample) -> bool {
        seen.average_duration
            .is_none_or(|took| took > self.average_duration * SLOW_FACTOR)
    }

    /// If fewer calls fail, no more than that fail whatever the load; if calls stay slow for minutes, that is how they are.
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

/// Slowly: while an upstream gets slow, calls pile up before the first of them fails.
fn move_slowly(usual: &mut f64, seen: f64) {
    let weight = if *usual > 0.0 { 0.05 } else { 1.0 };
    *usual += weight * (seen - *usual);
}
