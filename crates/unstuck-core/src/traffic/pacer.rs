//! Keeps what is sent to an upstream that is overloaded a little above what gets through.
//!
//! While nothing is wrong it only counts, in short windows, and learns what is usual. When too many calls fail it begins
//! to [pace](super::pace); when failures have stopped and nobody waits any more, it lets go.

use std::time::Duration;

use super::pace::Pace;
use super::window::{Seen, Usual};
use crate::failure::Kind;
use crate::moment::Timestamp;

/// The shortest time after which a window is judged, in milliseconds.
const WINDOW: i64 = 500;
/// The longest, where few calls end.
const LONG_WINDOW: i64 = 2000;
/// So many calls that ended make a window worth judging early.
const ENOUGH: u32 = 16;
/// So many failures, and a share so much above the usual, begin the pacing.
const FEW: u32 = 8;
const TOO_MANY: f64 = 0.25;
/// Whatever was is forgotten after so long without a call, in milliseconds.
const FORGOTTEN: i64 = 60_000;
/// The share of failures that is never taken for usual.
const USUAL_AT_MOST: f64 = 0.6;
/// Calls that take so many times as long as usual are slow.
const SLOW: f64 = 1.7;
/// The rate at least with which calls begin again, per millisecond.
const RESTART_AT_LEAST: f64 = 0.002;
/// The same where nothing is known of what is usual: slow enough that not all wake at once, and so fast that windows show
/// something, or it would take very long to get away from.
const RESTART_UNKNOWN: f64 = 0.05;

/// Counts what ends, and limits what goes when it must. Rates are in calls per millisecond.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pacer {
    since: i64,
    count: Count,
    usual: Usual,
    pace: Option<Pace>,
}

/// What happened in a window so far.
#[derive(Debug, Clone, Default, PartialEq)]
struct Count {
    sent: u32,
    through: u32,
    failed: u32,
    /// Those that failed since they took too long, among them.
    timed_out: u32,
    /// The most that were on their way.
    in_flight: u32,
    /// How long those that got through took together, in milliseconds.
    took: f64,
}

impl Pacer {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            since: now.millis(),
            count: Count::default(),
            usual: Usual::default(),
            pace: None,
        }
    }

    /// Until when nobody may go; `None` if one may.
    pub(super) fn wait(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.judge(now);
        self.pace.as_mut()?.wait(now)
    }

    /// Whether so many on their way are too many for now.
    pub(super) fn is_full(&mut self, in_flight: u32) -> bool {
        let pace = self.pace.as_mut();
        pace.is_some_and(|pace| pace.is_full(in_flight))
    }

    /// Takes note that one goes, and how many are on their way with it.
    pub(super) fn go(&mut self, in_flight: u32, now: Timestamp) {
        self.count.sent += 1;
        self.count.in_flight = self.count.in_flight.max(in_flight);
        if let Some(pace) = &mut self.pace {
            pace.go(now);
        }
    }

    /// Takes note that one got through, and how long it took.
    pub(super) fn through(&mut self, took: Duration, now: Timestamp) {
        self.count.through += 1;
        self.count.took += took.as_millis() as f64;
        self.judge(now);
    }

    /// Takes note that one failed because of the load, perhaps.
    pub(super) fn failed(&mut self, kind: Kind, now: Timestamp) {
        self.count.failed += 1;
        self.count.timed_out += u32::from(kind == Kind::Timeout);
        self.judge(now);
    }

    /// Begins anew with a share of what is usual, from a moment on: after a time in which nothing could go.
    pub(super) fn restart(&mut self, share: f64, now: Timestamp) {
        let rate = match self.usual.rate {
            0.0 => RESTART_UNKNOWN,
            usual => (usual * share).max(RESTART_AT_LEAST),
        };
        self.pace = Some(Pace::new(rate, &self.usual, now));
        self.begin(now.millis());
    }

    /// Whether it limits what goes.
    pub(super) fn is_pacing(&self) -> bool {
        self.pace.is_some()
    }

    /// Calls per second, while that is limited.
    pub(super) fn per_second(&self) -> Option<f64> {
        self.pace.as_ref().map(Pace::per_second)
    }

    fn judge(&mut self, now: Timestamp) {
        let passed = now.millis() - self.since;
        let ended = self.count.through + self.count.failed;
        if passed < WINDOW || (passed < LONG_WINDOW && ended < ENOUGH) {
            return;
        }
        let seen = self.count.over(passed as f64);
        match &mut self.pace {
            None => self.judge_free(&seen, now),
            Some(pace) => {
                if passed > FORGOTTEN || !pace.judge(&seen, &mut self.usual) {
                    self.pace = None;
                }
            }
        }
        self.begin(now.millis());
    }

    fn begin(&mut self, now: i64) {
        self.since = now;
        self.count = Count::default();
    }

    fn judge_free(&mut self, seen: &Seen, now: Timestamp) {
        let too_many = seen.loss > self.usual.loss + TOO_MANY;
        if self.count.failed >= FEW && too_many {
            self.pace = Some(Pace::following(seen, &self.usual, now));
        } else if seen.ended > 0 && !too_many {
            // A time in which hardly anything could go says nothing of what is usual.
            self.usual.learn(seen);
        }
    }
}

impl Count {
    fn over(&self, passed: f64) -> Seen {
        let ended = self.through + self.failed;
        // Of long calls none may have ended yet: those that did not fail will get through.
        let through = self.through.max(self.sent.saturating_sub(self.failed));
        Seen {
            through: f64::from(through) / passed,
            sent: f64::from(self.sent) / passed,
            loss: f64::from(self.failed) / f64::from(ended.max(1)),
            ended,
            timed_out: self.timed_out,
            in_flight: self.in_flight,
            took: (self.through > 0).then(|| self.took / f64::from(self.through)),
        }
    }
}

impl Usual {
    fn learn(&mut self, seen: &Seen) {
        if seen.ended >= ENOUGH {
            self.loss += 0.1 * (seen.loss.min(USUAL_AT_MOST) - self.loss);
        }
        let weight = if seen.sent > self.rate { 0.5 } else { 0.1 };
        self.rate += weight * (seen.sent - self.rate);
        approach(&mut self.in_flight, seen.in_flight.into());
        if let Some(took) = seen.took {
            approach(&mut self.took, took);
        }
    }

    /// So much fails whatever the load.
    pub(super) fn set_loss(&mut self, loss: f64) {
        self.loss = loss.min(USUAL_AT_MOST);
    }

    /// Whether hardly more failed than usual, but for chance.
    pub(super) fn is_clean(&self, seen: &Seen) -> bool {
        let spread = (self.loss * (1.0 - self.loss) / f64::from(seen.ended.max(1))).sqrt();
        seen.loss <= self.loss + spread.max(0.05)
    }

    /// Whether calls take so long that no more of them should be on their way.
    pub(super) fn is_slow(&self, seen: &Seen) -> bool {
        seen.took.is_none_or(|took| took > self.took * SLOW)
    }

    /// If fewer calls fail, no more than that fail whatever the load; if calls stay slow for minutes, that is how they are.
    pub(super) fn learn_while_pacing(&mut self, seen: &Seen) {
        if seen.loss < self.loss {
            self.loss += 0.3 * (seen.loss - self.loss);
        }
        if let Some(took) = seen.took {
            self.took += 0.005 * (took.min(self.took * SLOW) - self.took);
        }
    }
}

/// Slowly: while an upstream gets slow, calls pile up before the first of them fails.
fn approach(usual: &mut f64, seen: f64) {
    let weight = if *usual > 0.0 { 0.05 } else { 1.0 };
    *usual += weight * (seen - *usual);
}
