//! Keeps what is sent to an upstream that is overloaded a little above what gets through.
//!
//! While nothing is wrong it only counts. In short windows it looks at how many calls failed: when too many do, it
//! limits the rate to slightly more than what got through; when failures stop, it raises the rate fast and finally lets go.
//! Now and then it sends a little less than gets through, to see whether the failures depend on the load at all:
//! those that do not are no reason to slow down.

use crate::moment::Timestamp;

/// The shortest time after which the rate is judged, in milliseconds.
const WINDOW: i64 = 500;
/// The longest, where few calls end.
const LONG_WINDOW: i64 = 2000;
/// So many calls that ended make a window worth judging early.
const ENOUGH: u32 = 16;
/// So many make one worth anything.
const SOME: u32 = 6;
/// So many failures, and a share so much above the usual, begin the pacing.
const FEW: u32 = 8;
const TOO_MANY: f64 = 0.25;
/// A share so much above the usual is still a clean window.
const CLEAN: f64 = 0.05;
/// What is sent for what gets through.
const MORE: f64 = 1.1;
/// The same, when looking whether failures depend on the load.
const LESS: f64 = 0.7;
/// In this window of a round of eight less is sent, and in the next if that one was not clean: what had been sent
/// before may still have failed in it.
const LESS_IN: u8 = 3;
const ROUND: u8 = 8;
/// How the rate grows with the first clean window in a row, the second, and each that follows.
const GROW: [f64; 3] = [1.1, 1.5, 2.0];
/// The most that the rate changes with a window that is not clean.
const SHRINK: f64 = 0.5;
const STRETCH: f64 = 1.5;
/// After so many clean windows in which nobody was held, it lets go.
const QUIET: u8 = 3;
/// Whatever was is forgotten after so long without a call, in milliseconds.
const FORGOTTEN: i64 = 60_000;
/// Never slower than one call in a second or this share of what is usual, so that somebody always finds out.
const SLOWEST: f64 = 0.001;
const SLOWEST_SHARE: f64 = 0.05;
/// How much may go at once, in milliseconds of the rate.
const BURST: f64 = 20.0;
/// The share of failures that is never taken for usual.
const USUAL_AT_MOST: f64 = 0.6;

/// Counts what ends, and limits the rate when it must. Rates are in calls per millisecond.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pacer {
    since: i64,
    sent: u32,
    through: u32,
    failed: u32,
    /// The share of calls that fails whatever the load.
    usual_loss: f64,
    /// What is sent when nothing is wrong.
    usual_rate: f64,
    paced: Option<Paced>,
}

/// While the rate is limited.
#[derive(Debug, Clone, PartialEq)]
struct Paced {
    rate: f64,
    /// When the next call may go.
    next: f64,
    /// Whether somebody had to wait in this window.
    held: bool,
    /// What got through in the last windows, the newest first.
    through: [f64; 4],
    seen: usize,
    /// Clean windows in a row.
    clean: usize,
    /// Failing windows so far.
    windows: u8,
    /// Windows in a row in which less is sent, to see what fails whatever the load.
    less: u8,
    quiet: u8,
}

/// What a window showed.
struct Seen {
    /// What got through, per millisecond.
    through: f64,
    sent: f64,
    loss: f64,
    ended: u32,
}

impl Pacer {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            since: now.millis(),
            sent: 0,
            through: 0,
            failed: 0,
            usual_loss: 0.0,
            usual_rate: 0.0,
            paced: None,
        }
    }

    /// Until when nobody may go; `None` if one may.
    pub(super) fn wait(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.judge(now);
        let paced = self.paced.as_mut()?;
        let next = moment(paced.next);
        paced.held |= now < next;
        (now < next).then_some(next)
    }

    /// Takes note that one goes.
    pub(super) fn go(&mut self, now: Timestamp) {
        self.sent += 1;
        if let Some(paced) = &mut self.paced {
            let now = now.millis() as f64;
            paced.next = paced.next.max(now - BURST) + 1.0 / paced.rate;
        }
    }

    /// Takes note that one got through.
    pub(super) fn through(&mut self, now: Timestamp) {
        self.through += 1;
        self.judge(now);
    }

    /// Takes note that one failed because of the load, perhaps.
    pub(super) fn failed(&mut self, now: Timestamp) {
        self.failed += 1;
        self.judge(now);
    }

    /// Begins anew with a share of what is usual, from a moment on: after a time in which nothing could go.
    pub(super) fn restart(&mut self, share: f64, now: Timestamp) {
        let rate = (self.usual_rate * share).max(2.0 * SLOWEST);
        self.pace(rate, now.millis() as f64);
        self.begin(now.millis());
    }

    /// Whether the rate is limited.
    pub(super) fn is_pacing(&self) -> bool {
        self.paced.is_some()
    }

    /// Calls per second, while it is limited.
    pub(super) fn per_second(&self) -> Option<f64> {
        self.paced.as_ref().map(|paced| paced.rate * 1000.0)
    }

    fn judge(&mut self, now: Timestamp) {
        let passed = now.millis() - self.since;
        if passed < WINDOW || (passed < LONG_WINDOW && self.through + self.failed < ENOUGH) {
            return;
        }
        let seen = self.seen(passed as f64);
        match self.paced.take() {
            None => self.judge_free(&seen, now),
            Some(_) if passed > FORGOTTEN => {}
            Some(paced) => self.paced = self.judge_paced(paced, &seen),
        }
        self.begin(now.millis());
    }

    fn begin(&mut self, now: i64) {
        self.since = now;
        (self.sent, self.through, self.failed) = (0, 0, 0);
    }

    fn seen(&self, passed: f64) -> Seen {
        let ended = self.through + self.failed;
        // Of long calls none may have ended yet: those that did not fail will get through.
        let through = self.through.max(self.sent.saturating_sub(self.failed));
        Seen {
            through: f64::from(through) / passed,
            sent: f64::from(self.sent) / passed,
            loss: f64::from(self.failed) / f64::from(ended.max(1)),
            ended,
        }
    }

    fn judge_free(&mut self, seen: &Seen, now: Timestamp) {
        if self.failed >= FEW && seen.loss > self.usual_loss + TOO_MANY {
            let rate = MORE * seen.through / (1.0 - self.usual_loss);
            return self.pace(rate.max(self.slowest()), now.millis() as f64);
        }
        if seen.ended >= ENOUGH {
            self.usual_loss += 0.1 * (seen.loss.min(USUAL_AT_MOST) - self.usual_loss);
        }
        // A time in which nothing could go says nothing of what is usual.
        if seen.ended == 0 || seen.loss > self.usual_loss + TOO_MANY {
            return;
        }
        let weight = if seen.sent > self.usual_rate {
            0.5
        } else {
            0.1
        };
        self.usual_rate += weight * (seen.sent - self.usual_rate);
    }

    fn pace(&mut self, rate: f64, next: f64) {
        self.paced = Some(Paced {
            rate,
            next,
            held: false,
            through: [0.0; 4],
            seen: 0,
            clean: 0,
            windows: 0,
            less: 0,
            quiet: 0,
        });
    }

    fn judge_paced(&mut self, mut paced: Paced, seen: &Seen) -> Option<Paced> {
        if paced.less == 0 {
            paced.through.rotate_right(1);
            paced.through[0] = seen.through;
            paced.seen = (paced.seen + 1).min(paced.through.len());
        }
        let clean = seen.loss <= self.usual_loss + self.margin(seen);
        let held = std::mem::take(&mut paced.held);
        paced.quiet = match clean && !held {
            true => paced.quiet + u8::from(seen.ended > 0),
            false => 0,
        };
        if paced.quiet >= QUIET {
            return None;
        }
        if paced.less > 0 {
            self.compare(&mut paced, seen, clean);
        } else if !clean {
            paced.clean = 0;
            paced.windows = (paced.windows + 1) % ROUND;
            paced.less = u8::from(paced.windows == LESS_IN);
            self.follow(&mut paced);
        } else if held && seen.ended > 0 {
            self.grow(&mut paced);
        }
        Some(paced)
    }

    /// How much more than usual may fail by chance.
    fn margin(&self, seen: &Seen) -> f64 {
        let usual = self.usual_loss;
        CLEAN.max((usual * (1.0 - usual) / f64::from(seen.ended.max(1))).sqrt())
    }

    /// Less was sent: what still fails does so whatever the load.
    fn compare(&mut self, paced: &mut Paced, seen: &Seen, clean: bool) {
        if !clean && paced.less == 1 {
            paced.less = 2;
            return;
        }
        if seen.ended >= SOME {
            self.usual_loss = seen.loss.min(USUAL_AT_MOST);
        }
        paced.less = 0;
        self.follow(paced);
    }

    /// Below what is usual it grows fast, above it slowly.
    fn grow(&self, paced: &mut Paced) {
        let grown = paced.rate * GROW[paced.clean.min(GROW.len() - 1)];
        paced.clean += 1;
        paced.rate = grown.min(self.usual_rate.max(paced.rate * GROW[0]));
    }

    /// Slightly more than what gets through, or slightly less to compare.
    fn follow(&self, paced: &mut Paced) {
        let gain = if paced.less > 0 { LESS } else { MORE };
        let through = &paced.through[..paced.seen];
        let through = through.iter().sum::<f64>() / through.len().max(1) as f64;
        let rate = gain * through / (1.0 - self.usual_loss);
        paced.rate = rate
            .max(paced.rate * SHRINK)
            .min(paced.rate * STRETCH)
            .max(self.slowest());
    }

    fn slowest(&self) -> f64 {
        SLOWEST.max(self.usual_rate * SLOWEST_SHARE)
    }
}

/// Rounded up to a whole millisecond.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from floats saturate"
)]
fn moment(millis: f64) -> Timestamp {
    Timestamp::from_millis(millis.ceil() as i64)
}
