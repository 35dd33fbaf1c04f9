//! Estimates the remaining quota between two responses that state it.
//!
//! Sent calls are subtracted at once. A response may be older than calls still in flight, so its value is an upper
//! bound, and its value minus those calls a lower bound.

use super::response_rate_limits::RemainingQuota;
use crate::time::Timestamp;

/// Share of the limit that is kept in reserve: below it nothing is sent until the reset.
const RESERVE: f64 = 0.02;
/// Share of the limit below which the rest is spread until the reset.
const LOW: f64 = 0.5;
/// Share of the rest that may be sent in one burst while it is spread.
const BURST: f64 = 0.1;
/// Remaining quota that is low if no limit is stated.
const LOW_UNSTATED: f64 = 20.0;
/// Factor by which the observed refill is underestimated.
const CAUTION: f64 = 0.95;

/// The estimated quota of one limited resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuotaWindow {
    limit: Option<f64>,
    left: f64,
    /// The time at which `left` was accurate.
    updated_at: Timestamp,
    /// The time of the last response that stated the quota.
    reported_at: Timestamp,
    reset: Timestamp,
    /// Refill per millisecond; zero if everything refills at the reset.
    refill: f64,
    refills: bool,
    /// The longest observed time to a reset, in milliseconds: an estimate of the next window's length.
    span: i64,
    /// The time at which the next call may be sent if the rest is spread evenly, in milliseconds.
    even_line: f64,
    /// End of the hold: the even line minus the burst.
    held_until: Timestamp,
}

/// The reason why an amount is unavailable, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaShortage {
    /// The remaining quota is too small.
    UsedUp(Timestamp),
    /// The remaining quota is spread over time.
    Spread(Timestamp),
}

impl QuotaWindow {
    /// Creates a window from a response received while this amount is in flight.
    pub(super) fn new(
        seen: &RemainingQuota,
        told: Timestamp,
        on_the_way: f64,
        now: Timestamp,
    ) -> Self {
        let mut allowance = Self {
            limit: None,
            left: 0.0,
            updated_at: now,
            reported_at: told,
            reset: seen.reset,
            refill: 0.0,
            refills: seen.refills,
            span: 1000,
            even_line: 0.0,
            held_until: Timestamp::from_millis(i64::MIN),
        };
        allowance.apply_reading(seen, told, now);
        allowance.left = (seen.remaining as f64 - on_the_way).max(0.0);
        allowance
    }

    /// Applies a response received while this amount is in flight.
    pub(super) fn observe(
        &mut self,
        seen: &RemainingQuota,
        told: Timestamp,
        on_the_way: f64,
        now: Timestamp,
    ) {
        // A response from before the window began says nothing about this one.
        if told < self.reported_at || (!seen.refills && seen.reset <= now) {
            return;
        }
        self.advance_to(now);
        self.apply_reading(seen, told, now);
        let most = seen.remaining as f64;
        self.left = self.left.max(most - on_the_way).min(most).max(0.0);
        if !self.is_low() {
            self.held_until = Timestamp::from_millis(i64::MIN);
        }
    }

    fn apply_reading(&mut self, seen: &RemainingQuota, told: Timestamp, now: Timestamp) {
        self.limit = seen.limit.map(|limit| limit as f64).or(self.limit);
        self.reported_at = told;
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

    /// Returns true if nothing is known any more: the window is over, and the size of the next was never stated.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.limit.is_none() && now >= self.reset
    }

    /// Returns until when the amount is unavailable; `None` if it is available.
    pub(super) fn shortage(&self, cost: f64, now: Timestamp) -> Option<QuotaShortage> {
        let left = self.left_at(now);
        let reserve = self.reserve();
        // A call larger than the whole limit is admitted when the quota is full: the provider decides.
        let cost = self.limit.map_or(cost, |limit| cost.min(limit - reserve));
        let missing = cost + reserve - left;
        if missing > 1e-6 {
            return Some(QuotaShortage::UsedUp(
                self.time_when_refilled(missing, now).max(self.held_until),
            ));
        }
        (now < self.held_until).then_some(QuotaShortage::Spread(self.held_until))
    }

    /// Subtracts an amount.
    pub(super) fn consume(&mut self, cost: f64, now: Timestamp) {
        self.advance_to(now);
        self.left = (self.left - cost).max(0.0);
        if cost <= 0.0 {
            return;
        }
        let (spendable, time) = (self.left - self.reserve(), self.time_left(now));
        if !self.is_low() || spendable <= 0.0 || time <= 0.0 {
            self.held_until = Timestamp::from_millis(i64::MIN);
            return;
        }
        let gap = cost / (self.refill_now() + spendable / time);
        self.even_line = self.even_line.max(now.millis() as f64) + gap;
        let burst = gap * (spendable * BURST / cost).floor();
        self.held_until = to_timestamp(self.even_line - burst).min(self.time_when_full(now));
    }

    /// The remaining quota at a given time.
    pub(super) fn status(&self, now: Timestamp) -> RemainingQuota {
        RemainingQuota {
            limit: self.limit.map(to_count),
            remaining: to_count(self.left_at(now)),
            reset: self.reset.max(now),
            refills: self.refills,
        }
    }

    fn left_at(&self, now: Timestamp) -> f64 {
        let limit = self.limit.unwrap_or(f64::INFINITY);
        if !self.refills {
            return if now >= self.reset { limit } else { self.left };
        }
        // Without a known refill rate everything refills at the reset.
        if self.refill == 0.0 && now >= self.reset {
            return limit;
        }
        let passed = now.since(self.updated_at).as_millis() as f64;
        (self.left + passed * self.refill).min(limit)
    }

    /// Advances to the current time; the next window is assumed to be as long as the longest observed.
    fn advance_to(&mut self, now: Timestamp) {
        self.left = self.left_at(now);
        self.updated_at = self.updated_at.max(now);
        let over = now >= self.reset && (!self.refills || self.refill == 0.0);
        if over {
            self.reset = Timestamp::from_millis(now.millis().saturating_add(self.span));
            self.even_line = 0.0;
        }
    }

    /// Returns when this much more will be available.
    fn time_when_refilled(&self, missing: f64, now: Timestamp) -> Timestamp {
        if self.refill_now() > 0.0 {
            return to_timestamp(now.millis() as f64 + missing / self.refill + 1.0);
        }
        self.reset
    }

    /// Returns when the quota will be full.
    fn time_when_full(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(
            now.millis()
                .saturating_add(to_timestamp(self.time_left(now)).millis()),
        )
    }

    /// Returns the milliseconds until the quota is full.
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

/// Rounded up to a whole millisecond: slightly too early would find too little.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from floats saturate"
)]
fn to_timestamp(millis: f64) -> Timestamp {
    Timestamp::from_millis(millis.ceil() as i64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate"
)]
fn to_count(number: f64) -> u64 {
    number as u64
}
