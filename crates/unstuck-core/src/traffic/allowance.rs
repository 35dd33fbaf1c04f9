//! What is left of one thing that a provider limits, between two answers that say so.
//!
//! What was sent since counts at once. An answer may be older than calls that are still on their way, so what it says is an
//! upper bound, and what it says less those calls a lower one.

use super::limits::Window;
use crate::moment::Timestamp;

/// The share of the limit that is kept: below it nobody goes until the reset.
const RESERVE: f64 = 0.02;
/// From this share of the limit on, what is left is spread until the reset.
const LOW: f64 = 0.5;
/// The share of what is left that may go at once while it is spread.
const BURST: f64 = 0.1;
/// Where no limit is stated, this little is low.
const LOW_UNSTATED: f64 = 20.0;
/// What comes back is counted a little lower than it was seen to.
const CAUTION: f64 = 0.95;

/// The account of one thing that is limited.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Allowance {
    limit: Option<f64>,
    left: f64,
    /// When `left` was right.
    at: Timestamp,
    /// When an answer last told.
    told: Timestamp,
    reset: Timestamp,
    /// What comes back in a millisecond; nothing where all comes back at the reset.
    refill: f64,
    refills: bool,
    /// The longest time to a reset that was seen, in milliseconds: how long the next window may be.
    span: i64,
    /// When the next may go if what is left is spread evenly, in milliseconds.
    even: f64,
    /// Before this moment nobody goes: the even line less the burst.
    held: Timestamp,
}

/// Why and until when nobody may take so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Short {
    /// There is not enough left.
    UsedUp(Timestamp),
    /// What is left is spread.
    Spread(Timestamp),
}

impl Allowance {
    /// What an answer says while so much is on its way.
    pub(super) fn new(seen: &Window, told: Timestamp, on_the_way: f64, now: Timestamp) -> Self {
        let mut allowance = Self {
            limit: None,
            left: 0.0,
            at: now,
            told,
            reset: seen.reset,
            refill: 0.0,
            refills: seen.refills,
            span: 1000,
            even: 0.0,
            held: Timestamp::from_millis(i64::MIN),
        };
        allowance.take_in(seen, told, now);
        allowance.left = (seen.remaining as f64 - on_the_way).max(0.0);
        allowance
    }

    /// Takes in what an answer says while so much is on its way.
    pub(super) fn observe(
        &mut self,
        seen: &Window,
        told: Timestamp,
        on_the_way: f64,
        now: Timestamp,
    ) {
        // An answer from before the window began says nothing about this one.
        if told < self.told || (!seen.refills && seen.reset <= now) {
            return;
        }
        self.settle(now);
        self.take_in(seen, told, now);
        let most = seen.remaining as f64;
        self.left = self.left.max(most - on_the_way).min(most).max(0.0);
        if !self.is_low() {
            self.held = Timestamp::from_millis(i64::MIN);
        }
    }

    fn take_in(&mut self, seen: &Window, told: Timestamp, now: Timestamp) {
        self.limit = seen.limit.map(|limit| limit as f64).or(self.limit);
        self.told = told;
        self.refills = seen.refills;
        self.reset = seen.reset;
        let time = seen.reset.millis().saturating_sub(now.millis());
        self.span = self.span.max(time);
        let used = self.limit.map(|limit| limit - seen.remaining as f64);
        if let Some(used) = used
            && seen.refills
            && used >= 1.0
            && time > 0
        {
            self.refill = CAUTION * used / time as f64;
        }
    }

    /// Nothing of it is known any more: the window is over, and how large the next is was never stated.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.limit.is_none() && now >= self.reset
    }

    /// Until when so much cannot be taken; `None` if it can.
    pub(super) fn short(&self, cost: f64, now: Timestamp) -> Option<Short> {
        let left = self.left_at(now);
        let reserve = self.reserve();
        // What is larger than the whole limit is let through when all is there: the provider will say what it thinks.
        let cost = self.limit.map_or(cost, |limit| cost.min(limit - reserve));
        let missing = cost + reserve - left;
        if missing > 1e-6 {
            return Some(Short::UsedUp(self.back(missing, now).max(self.held)));
        }
        (now < self.held).then_some(Short::Spread(self.held))
    }

    /// Takes so much out.
    pub(super) fn take(&mut self, cost: f64, now: Timestamp) {
        self.settle(now);
        self.left = (self.left - cost).max(0.0);
        if cost <= 0.0 {
            return;
        }
        let (spendable, time) = (self.left - self.reserve(), self.time_left(now));
        if !self.is_low() || spendable <= 0.0 || time <= 0.0 {
            self.held = Timestamp::from_millis(i64::MIN);
            return;
        }
        let gap = cost / (self.refill_now() + spendable / time);
        self.even = self.even.max(now.millis() as f64) + gap;
        let burst = gap * (spendable * BURST / cost).floor();
        self.held = moment(self.even - burst).min(self.full(now));
    }

    /// What is left at a moment.
    pub(super) fn shown(&self, now: Timestamp) -> Window {
        Window {
            limit: self.limit.map(count),
            remaining: count(self.left_at(now)),
            reset: self.reset.max(now),
            refills: self.refills,
        }
    }

    fn left_at(&self, now: Timestamp) -> f64 {
        let limit = self.limit.unwrap_or(f64::INFINITY);
        if !self.refills {
            return if now >= self.reset { limit } else { self.left };
        }
        // Without a known speed all of it is back at the reset.
        if self.refill == 0.0 && now >= self.reset {
            return limit;
        }
        let passed = now.since(self.at).as_millis() as f64;
        (self.left + passed * self.refill).min(limit)
    }

    /// Brings the account to the present; where a window is over, the next is taken to be as long as the longest seen.
    fn settle(&mut self, now: Timestamp) {
        self.left = self.left_at(now);
        self.at = self.at.max(now);
        let over = now >= self.reset && (!self.refills || self.refill == 0.0);
        if over {
            self.reset = Timestamp::from_millis(now.millis().saturating_add(self.span));
            self.even = 0.0;
        }
    }

    /// When so much more will be there.
    fn back(&self, missing: f64, now: Timestamp) -> Timestamp {
        if self.refill_now() > 0.0 {
            return moment(now.millis() as f64 + missing / self.refill + 1.0);
        }
        self.reset
    }

    /// When all of it is there again.
    fn full(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(
            now.millis()
                .saturating_add(moment(self.time_left(now)).millis()),
        )
    }

    /// Milliseconds until all of it is there again.
    fn time_left(&self, now: Timestamp) -> f64 {
        match self.limit {
            Some(limit) if self.refill_now() > 0.0 => (limit - self.left).max(0.0) / self.refill,
            _ => self.reset.since(now).as_millis() as f64,
        }
    }

    fn refill_now(&self) -> f64 {
        if self.refills { self.refill } else { 0.0 }
    }

    fn reserve(&self) -> f64 {
        self.limit.map_or(0.0, |limit| (limit * RESERVE).floor())
    }

    fn is_low(&self) -> bool {
        self.left < self.limit.map_or(LOW_UNSTATED, |limit| limit * LOW)
    }
}

/// Rounded up to a whole millisecond: a moment too early would find too little.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from floats saturate"
)]
fn moment(millis: f64) -> Timestamp {
    Timestamp::from_millis(millis.ceil() as i64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate"
)]
fn count(number: f64) -> u64 {
    number as u64
}
