//! How fast calls may go to an upstream that is overloaded, and how many may be on their way.
//!
//! Slightly more is sent than gets through; when failures stop, the rate grows fast. Now and then less is sent than gets
//! through, to see whether the failures depend on the load at all: those that do not are no reason to slow down. Where an
//! upstream gets slow instead of refusing, failures show too late; there the number of calls on their way is the limit.

use super::window::{Seen, Usual};
use crate::moment::Timestamp;

/// What is sent for what gets through.
const MORE: f64 = 1.1;
/// The same, when looking whether failures depend on the load.
const LESS: f64 = 0.7;
/// In this failing window of a round less is sent, and in the next if that one was not clean: what had been sent before
/// may still have failed in it.
const LESS_IN: u8 = 3;
const ROUND: u8 = 8;
/// So many calls that ended make a window worth comparing.
const SOME: u32 = 6;
/// How the rate grows with the first clean window in a row, the second, and each that follows.
const GROW: [f64; 3] = [1.1, 1.5, 2.0];
/// The most that the rate changes with a window that is not clean.
const SHRINK: f64 = 0.5;
const STRETCH: f64 = 1.5;
/// After so many clean windows in which nobody was held, it is over.
const QUIET: u8 = 3;
/// Never slower than one call in a second or this share of what is usual, so that somebody always finds out.
const SLOWEST: f64 = 0.001;
const SLOWEST_SHARE: f64 = 0.05;
/// So many times as many calls as usual may be on their way.
const IN_FLIGHT: f64 = 1.2;
const IN_FLIGHT_AT_LEAST: f64 = 4.0;
/// What is left of that after a window with timeouts that is not clean.
const IN_FLIGHT_SHRINK: f64 = 0.8;
/// How much may go at once, in milliseconds of the rate.
const BURST: f64 = 20.0;

/// The limits while an upstream is overloaded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pace {
    /// Calls per millisecond.
    rate: f64,
    /// When the next call may go.
    next: f64,
    /// How many calls may be on their way.
    most: f64,
    /// Whether somebody had to wait in this window for the rate.
    held: bool,
    /// Whether as many were on their way as may be.
    full: bool,
    /// What got through in the last windows, the newest first.
    through: [f64; 4],
    windows: usize,
    /// Clean windows in a row.
    clean: usize,
    /// Clean windows in a row in which nobody had to wait.
    quiet: u8,
    /// Failing windows in this round.
    failing: u8,
    /// Windows in a row in which less is sent.
    less: u8,
}

impl Pace {
    pub(super) fn new(rate: f64, usual: &Usual, now: Timestamp) -> Self {
        let most = match usual.in_flight {
            0.0 => f64::INFINITY,
            usual => (usual * IN_FLIGHT).max(IN_FLIGHT_AT_LEAST),
        };
        Self {
            rate,
            next: now.millis() as f64,
            most,
            held: false,
            full: false,
            through: [0.0; 4],
            windows: 0,
            clean: 0,
            quiet: 0,
            failing: 0,
            less: 0,
        }
    }

    /// Slightly more than what got through.
    pub(super) fn following(seen: &Seen, usual: &Usual, now: Timestamp) -> Self {
        let rate = MORE * seen.through / (1.0 - usual.loss);
        Self::new(rate.max(slowest(usual)), usual, now)
    }

    /// Until when nobody may go; `None` if one may.
    pub(super) fn wait(&mut self, now: Timestamp) -> Option<Timestamp> {
        let next = moment(self.next);
        let held = now < next;
        self.held |= held;
        held.then_some(next)
    }

    /// Whether so many on their way are too many.
    pub(super) fn is_full(&mut self, in_flight: u32) -> bool {
        let full = f64::from(in_flight) >= self.most;
        self.full |= full;
        full
    }

    /// Takes note that one goes.
    pub(super) fn go(&mut self, now: Timestamp) {
        let now = now.millis() as f64;
        self.next = self.next.max(now - BURST) + 1.0 / self.rate;
    }

    pub(super) fn per_second(&self) -> f64 {
        self.rate * 1000.0
    }

    /// Sets the limits by what a window showed; `false` when they are no longer needed.
    pub(super) fn judge(&mut self, seen: &Seen, usual: &mut Usual) -> bool {
        if self.less == 0 {
            self.through.rotate_right(1);
            self.through[0] = seen.through;
            self.windows = (self.windows + 1).min(self.through.len());
        }
        let clean = usual.is_clean(seen);
        let held = std::mem::take(&mut self.held);
        let full = std::mem::take(&mut self.full);
        let quiet = clean && !held && !full;
        self.quiet = match quiet {
            true => self.quiet + u8::from(seen.ended > 0),
            false => 0,
        };
        if self.less > 0 {
            self.compare(seen, usual, clean);
        } else if !clean {
            self.slow(seen, usual);
        } else if seen.ended > 0 && (held || full) {
            self.grow(held, full, seen, usual);
        }
        self.quiet < QUIET
    }

    fn slow(&mut self, seen: &Seen, usual: &Usual) {
        self.clean = 0;
        if seen.timed_out > 0 {
            self.most = (self.most * IN_FLIGHT_SHRINK).max(IN_FLIGHT_AT_LEAST);
        }
        self.failing = (self.failing + 1) % ROUND;
        self.less = u8::from(self.failing == LESS_IN);
        self.follow(usual);
    }

    /// Less was sent: what still fails does so whatever the load.
    fn compare(&mut self, seen: &Seen, usual: &mut Usual, clean: bool) {
        if !clean && self.less == 1 {
            self.less = 2;
            return;
        }
        // Where calls get slow, those that time out now were sent long before.
        let late = seen.timed_out > 0 && usual.is_slow(seen);
        if seen.ended >= SOME && !late {
            usual.set_loss(seen.loss);
        }
        self.less = 0;
        self.follow(usual);
    }

    /// Raises what held somebody: the rate, fast while it is below the usual; the calls on their way, unless they get slow.
    fn grow(&mut self, held: bool, full: bool, seen: &Seen, usual: &mut Usual) {
        let factor = GROW[self.clean.min(GROW.len() - 1)];
        self.clean += 1;
        if held {
            self.rate = (self.rate * factor).min(usual.rate.max(self.rate * GROW[0]));
        }
        if full && !usual.is_slow(seen) {
            self.most *= GROW[0];
        }
        usual.learn_while_pacing(seen);
    }

    /// Slightly more than what gets through, or less to compare.
    fn follow(&mut self, usual: &Usual) {
        let gain = if self.less > 0 { LESS } else { MORE };
        let through = &self.through[..self.windows];
        let through = through.iter().sum::<f64>() / through.len().max(1) as f64;
        let rate = gain * through / (1.0 - usual.loss);
        self.rate = rate
            .max(self.rate * SHRINK)
            .min(self.rate * STRETCH)
            .max(slowest(usual));
    }
}

fn slowest(usual: &Usual) -> f64 {
    SLOWEST.max(usual.rate * SLOWEST_SHARE)
}

/// Rounded up to a whole millisecond: a moment too early would still be too early.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from floats saturate"
)]
fn moment(millis: f64) -> Timestamp {
    Timestamp::from_millis(millis.ceil() as i64)
}
