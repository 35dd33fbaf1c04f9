//! A simulated upstream of limited capacity: refusing costs work too, so a retry storm does harm.

use std::collections::VecDeque;
use std::time::Duration;

use super::scenario::{Limit, SimulatedUpstreamSettings};
use crate::admission::{RemainingQuota, ResponseRateLimits};
use crate::time::Timestamp;

/// An API attempt of a simulated client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimulatedAttempt {
    pub(super) client: u32,
    pub(super) serial: u32,
}

/// The result of a call's arrival at the simulated upstream.
#[derive(Debug, PartialEq)]
pub(super) enum SimulatedArrivalOutcome {
    /// Processing starts.
    Begun,
    /// It is queued.
    Queued,
    /// The queue is full.
    Refused,
    /// The upstream is down.
    Unreachable,
    /// The rate limit is exhausted for this long.
    Limited(Duration),
}

/// The simulated upstream.
#[derive(Debug)]
pub(super) struct Upstream {
    settings: SimulatedUpstreamSettings,
    /// The current number of slots.
    places: u32,
    busy: u32,
    queue: VecDeque<SimulatedAttempt>,
    /// Pending work of refusing, in calls.
    debt: f64,
    left: f64,
    /// When `left` was accurate, or when the current window began.
    since: Timestamp,
}

impl Upstream {
    pub(super) fn new(settings: &SimulatedUpstreamSettings, now: Timestamp) -> Self {
        Self {
            places: settings.places,
            busy: 0,
            queue: VecDeque::new(),
            debt: 0.0,
            left: settings.limit.map_or(0.0, |limit| limit.requests.into()),
            since: now,
            settings: settings.clone(),
        }
    }

    /// Sets the number of slots; with none the queue is lost.
    pub(super) fn set_places(&mut self, places: u32) -> Vec<SimulatedAttempt> {
        self.places = places;
        match places {
            0 => self.queue.drain(..).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn arrives(
        &mut self,
        sent: SimulatedAttempt,
        now: Timestamp,
    ) -> SimulatedArrivalOutcome {
        if self.places == 0 {
            return SimulatedArrivalOutcome::Unreachable;
        }
        if let Some(wait) = self.limited(now) {
            return SimulatedArrivalOutcome::Limited(wait);
        }
        if self.busy < self.places {
            self.busy += 1;
            return SimulatedArrivalOutcome::Begun;
        }
        if self.queue.len() < self.settings.queue as usize {
            self.queue.push_back(sent);
            return SimulatedArrivalOutcome::Queued;
        }
        self.debt += self.settings.refusal_cost;
        SimulatedArrivalOutcome::Refused
    }

    /// Ends the processing of a call. Returns the next queued call, if any; an inner `None` is the work of refusing.
    pub(super) fn ended(&mut self) -> Option<Option<SimulatedAttempt>> {
        if self.busy > self.places {
            self.busy -= 1;
            return None;
        }
        if self.debt >= 1.0 {
            self.debt -= 1.0;
            return Some(None);
        }
        match self.queue.pop_front() {
            Some(next) => Some(Some(next)),
            None => {
                self.busy -= 1;
                None
            }
        }
    }

    /// Returns the queued calls that can start with additional slots.
    pub(super) fn begins(&mut self) -> Vec<SimulatedAttempt> {
        let free = self.places.saturating_sub(self.busy) as usize;
        let next: Vec<_> = self.queue.drain(..free.min(self.queue.len())).collect();
        self.busy += u32::try_from(next.len()).unwrap_or(u32::MAX);
        next
    }

    fn limited(&mut self, now: Timestamp) -> Option<Duration> {
        let limit = self.settings.limit?;
        self.refill(limit, now);
        if self.left >= 1.0 {
            self.left -= 1.0;
            return None;
        }
        Some(if limit.refills {
            limit.per.div_f64(limit.requests.into()).max(SECOND)
        } else {
            self.since.after(limit.per).since(now)
        })
    }

    fn refill(&mut self, limit: Limit, now: Timestamp) {
        let all = f64::from(limit.requests);
        let passed = now.since(self.since);
        if limit.refills {
            let back = all * passed.as_secs_f64() / limit.per.as_secs_f64();
            self.left = (self.left + back).min(all);
            self.since = now;
        } else if passed >= limit.per {
            self.left = all;
            self.since = now;
        }
    }

    /// Returns the rate-limit headers.
    pub(super) fn headers(&mut self, now: Timestamp) -> ResponseRateLimits {
        let Some(limit) = self.settings.limit else {
            return ResponseRateLimits::default();
        };
        self.refill(limit, now);
        let missing = f64::from(limit.requests) - self.left;
        let reset = if limit.refills {
            now.after(limit.per.mul_f64(missing / f64::from(limit.requests)))
        } else {
            self.since.after(limit.per)
        };
        let window = RemainingQuota {
            limit: Some(limit.requests.into()),
            remaining: super::scenario::rounded(self.left.floor()).into(),
            reset,
            refills: limit.refills,
        };
        ResponseRateLimits {
            read_at: Some(now),
            requests: Some(window),
            ..ResponseRateLimits::default()
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);
