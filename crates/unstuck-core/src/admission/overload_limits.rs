//! The send rate to an overloaded upstream, and the limit of calls in flight.
//!
//! Slightly more is sent than succeeds; when failures stop, the rate grows fast. Occasionally less is sent than
//! succeeds, to test whether the failures depend on the load at all: those that do not are no reason to slow down. If
//! an upstream gets slow instead of refusing, failures appear too late; there the number of calls in flight is limited.

use super::upstream_load::{BaselineLoad, LoadSample};
use crate::time::Timestamp;

/// Calls sent per successful call.
const OVERSEND_FACTOR: f64 = 1.1;
/// Calls sent per successful call while testing whether failures depend on the load.
const UNDERSEND_FACTOR: f64 = 0.7;
/// The failing window of a round in which less is sent; also the next one if this was not clean, as earlier calls may
/// still have failed in it.
const UNDERSEND_WINDOW: u8 = 3;
const ROUND_WINDOWS: u8 = 8;
/// Minimum number of finished calls for a comparable window.
const MIN_COMPARABLE_CALLS: u32 = 6;
/// Growth of the rate with the first clean window in a row, the second, and each following one.
const GROWTH_FACTORS: [f64; 3] = [1.1, 1.5, 2.0];
/// Largest change of the rate by a window that is not clean.
const MAX_SHRINK: f64 = 0.5;
const MAX_STRETCH: f64 = 1.5;
/// The limit ends after this many clean windows without a held call.
const QUIET_WINDOWS: u8 = 3;
/// Minimum rate per millisecond or share of the baseline, so that some call always probes the upstream.
const MIN_RATE: f64 = 0.001;
const MIN_RATE_SHARE: f64 = 0.05;
/// Limit of calls in flight, as a multiple of the baseline.
const IN_FLIGHT_FACTOR: f64 = 1.2;
const MIN_IN_FLIGHT: f64 = 4.0;
/// Factor for that limit after a window with timeouts that is not clean.
const IN_FLIGHT_SHRINK: f64 = 0.8;
/// Size of a burst, in milliseconds of the rate.
const BURST_MILLIS: f64 = 20.0;

/// The limits while an upstream is overloaded: the send rate and the number of calls in flight.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OverloadLimits {
    /// Calls per millisecond.
    rate: f64,
    /// The time at which the next call may be sent.
    next_send: f64,
    /// Maximum number of calls in flight.
    max_in_flight: f64,
    /// True if the rate held a call in this window.
    was_held: bool,
    /// True if the maximum number of calls was in flight.
    was_full: bool,
    /// Throughput of the last windows, newest first.
    throughputs: [f64; 4],
    windows: usize,
    /// Clean windows in a row.
    clean: usize,
    /// Clean windows in a row without a held call.
    quiet: u8,
    /// Failing windows in this round.
    failing: u8,
    /// Consecutive windows in which less is sent.
    less: u8,
}

impl OverloadLimits {
    pub(super) fn new(rate: f64, usual: &BaselineLoad, now: Timestamp) -> Self {
        let max_in_flight = match usual.in_flight {
            0.0 => f64::INFINITY,
            usual => (usual * IN_FLIGHT_FACTOR).max(MIN_IN_FLIGHT),
        };
        Self {
            rate,
            next_send: now.millis() as f64,
            max_in_flight,
            was_held: false,
            was_full: false,
            throughputs: [0.0; 4],
            windows: 0,
            clean: 0,
            quiet: 0,
            failing: 0,
            less: 0,
        }
    }

    /// Starts slightly above the observed throughput.
    pub(super) fn from_sample(seen: &LoadSample, usual: &BaselineLoad, now: Timestamp) -> Self {
        let rate = OVERSEND_FACTOR * seen.throughput / (1.0 - usual.loss);
        Self::new(rate.max(min_rate(usual)), usual, now)
    }

    /// Returns until when calls are held; `None` if one may go.
    pub(super) fn wait_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let next = to_timestamp(self.next_send);
        let held = now < next;
        self.was_held |= held;
        held.then_some(next)
    }

    /// Returns true if this many calls in flight are too many.
    pub(super) fn is_full(&mut self, in_flight: u32) -> bool {
        let full = f64::from(in_flight) >= self.max_in_flight;
        self.was_full |= full;
        full
    }

    /// Records a sent call.
    pub(super) fn on_send(&mut self, now: Timestamp) {
        let now = now.millis() as f64;
        self.next_send = self.next_send.max(now - BURST_MILLIS) + 1.0 / self.rate;
    }

    pub(super) fn per_second(&self) -> f64 {
        self.rate * 1000.0
    }

    /// Adjusts the limits to the observed window; returns `false` when they are no longer needed.
    pub(super) fn adjust(&mut self, seen: &LoadSample, usual: &mut BaselineLoad) -> bool {
        if self.less == 0 {
            self.throughputs.rotate_right(1);
            self.throughputs[0] = seen.throughput;
            self.windows = (self.windows + 1).min(self.throughputs.len());
        }
        let clean = usual.is_clean(seen);
        let held = std::mem::take(&mut self.was_held);
        let full = std::mem::take(&mut self.was_full);
        let quiet = clean && !held && !full;
        self.quiet = if quiet {
            self.quiet + u8::from(seen.ended > 0)
        } else {
            0
        };
        if self.less > 0 {
            self.compare_loss(seen, usual, clean);
        } else if !clean {
            self.slow_down(seen, usual);
        } else if seen.ended > 0 && (held || full) {
            self.raise_limits(held, full, seen, usual);
        }
        self.quiet < QUIET_WINDOWS
    }

    fn slow_down(&mut self, seen: &LoadSample, usual: &BaselineLoad) {
        self.clean = 0;
        if seen.timed_out > 0 {
            self.max_in_flight = (self.max_in_flight * IN_FLIGHT_SHRINK).max(MIN_IN_FLIGHT);
        }
        self.failing = (self.failing + 1) % ROUND_WINDOWS;
        self.less = u8::from(self.failing == UNDERSEND_WINDOW);
        self.follow_throughput(usual);
    }

    /// Less was sent: remaining failures do not depend on the load.
    fn compare_loss(&mut self, seen: &LoadSample, usual: &mut BaselineLoad, clean: bool) {
        if !clean && self.less == 1 {
            self.less = 2;
            return;
        }
        // When calls get slow, those that time out now were sent long ago.
        let late = seen.timed_out > 0 && usual.is_slow(seen);
        if seen.ended >= MIN_COMPARABLE_CALLS && !late {
            usual.set_loss(seen.loss);
        }
        self.less = 0;
        self.follow_throughput(usual);
    }

    /// Raises the limit that held calls: the rate, fast while below the baseline; calls in flight, unless they get
    /// slow.
    fn raise_limits(
        &mut self,
        held: bool,
        full: bool,
        seen: &LoadSample,
        usual: &mut BaselineLoad,
    ) {
        let factor = GROWTH_FACTORS[self.clean.min(GROWTH_FACTORS.len() - 1)];
        self.clean += 1;
        if held {
            self.rate = (self.rate * factor).min(usual.rate.max(self.rate * GROWTH_FACTORS[0]));
        }
        if full && !usual.is_slow(seen) {
            self.max_in_flight *= GROWTH_FACTORS[0];
        }
        usual.learn_while_pacing(seen);
    }

    /// Sends slightly more than succeeds, or less to compare.
    fn follow_throughput(&mut self, usual: &BaselineLoad) {
        let gain = if self.less > 0 {
            UNDERSEND_FACTOR
        } else {
            OVERSEND_FACTOR
        };
        let through = &self.throughputs[..self.windows];
        let through = through.iter().sum::<f64>() / through.len().max(1) as f64;
        let rate = gain * through / (1.0 - usual.loss);
        self.rate = rate
            .max(self.rate * MAX_SHRINK)
            .min(self.rate * MAX_STRETCH)
            .max(min_rate(usual));
    }
}

fn min_rate(usual: &BaselineLoad) -> f64 {
    MIN_RATE.max(usual.rate * MIN_RATE_SHARE)
}

/// Rounded up to a whole millisecond: slightly too early would still be too early.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from floats saturate"
)]
fn to_timestamp(millis: f64) -> Timestamp {
    Timestamp::from_millis(millis.ceil() as i64)
}
