//! The limits of each key: token buckets for requests and tokens that refill evenly.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use unstuck_core::Timestamp;

use crate::protocol::{LimitUnit, OverLimit, RateLimitStatus, RemainingLimit};
use crate::script::FaultServerKeyLimits;

/// Maximum number of distinct keys; further ones share the last bucket.
const MAX_KEYS: usize = 10_000;

/// The token buckets of all API keys.
#[derive(Debug)]
pub(super) struct Buckets {
    limits: FaultServerKeyLimits,
    // Keyed by a hash, so that the keys themselves are not kept.
    keys: HashMap<u64, KeyBuckets>,
}

#[derive(Debug)]
struct KeyBuckets {
    requests: Option<TokenBucket>,
    tokens: Option<TokenBucket>,
}

#[derive(Debug)]
struct TokenBucket {
    limit: u32,
    per_second: f64,
    level: f64,
    at: f64,
}

/// The current time as a timestamp and in seconds since the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimestampAndUptime {
    pub(super) clock: Timestamp,
    pub(super) seconds: f64,
}

impl Buckets {
    pub(super) fn new(limits: FaultServerKeyLimits) -> Self {
        Self {
            limits,
            keys: HashMap::new(),
        }
    }

    /// Takes a request and its tokens from the key's buckets if available, and returns the remaining limits.
    pub(super) fn take_request(
        &mut self,
        key: &str,
        tokens: u64,
        now: TimestampAndUptime,
    ) -> (RateLimitStatus, Result<(), OverLimit>) {
        let pair = self.buckets_of(key, now.seconds);
        let over = [
            pair.requests
                .as_ref()
                .and_then(|bucket| bucket.check(LimitUnit::Requests, 1)),
            pair.tokens
                .as_ref()
                .and_then(|bucket| bucket.check(LimitUnit::Tokens, tokens)),
        ];
        // A request that never fits is reported first, else the longer wait.
        let over = over
            .into_iter()
            .flatten()
            .max_by_key(|over| over.wait.unwrap_or(Duration::MAX));
        if over.is_none() {
            pair.charge(1, tokens);
        }
        (pair.status(now.clock), over.map_or(Ok(()), Err))
    }

    /// Charges the tokens of an answer to the key's bucket, which may go below zero.
    pub(super) fn charge(
        &mut self,
        key: &str,
        tokens: u64,
        now: TimestampAndUptime,
    ) -> RateLimitStatus {
        let pair = self.buckets_of(key, now.seconds);
        pair.charge(0, tokens);
        pair.status(now.clock)
    }

    fn buckets_of(&mut self, key: &str, now: f64) -> &mut KeyBuckets {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let mut id = hasher.finish();
        if self.keys.len() >= MAX_KEYS && !self.keys.contains_key(&id) {
            id = 0;
        }
        let limits = self.limits;
        let pair = self.keys.entry(id).or_insert_with(|| KeyBuckets {
            requests: limits
                .requests_per_minute
                .map(|limit| TokenBucket::new(limit, limits, now)),
            tokens: limits
                .tokens_per_minute
                .map(|limit| TokenBucket::new(limit, limits, now)),
        });
        for bucket in [&mut pair.requests, &mut pair.tokens].into_iter().flatten() {
            bucket.refill(now);
        }
        pair
    }
}

impl KeyBuckets {
    fn charge(&mut self, requests: u64, tokens: u64) {
        let amounts = [(&mut self.requests, requests), (&mut self.tokens, tokens)];
        for (bucket, amount) in amounts {
            if let Some(bucket) = bucket {
                bucket.level -= amount as f64;
            }
        }
    }

    fn status(&self, now: Timestamp) -> RateLimitStatus {
        RateLimitStatus {
            now,
            requests: self.requests.as_ref().map(TokenBucket::remaining),
            tokens: self.tokens.as_ref().map(TokenBucket::remaining),
        }
    }
}

impl TokenBucket {
    fn new(limit: u32, limits: FaultServerKeyLimits, now: f64) -> Self {
        Self {
            limit,
            per_second: f64::from(limit) / limits.window.as_secs_f64().max(0.001),
            level: f64::from(limit),
            at: now,
        }
    }

    fn refill(&mut self, now: f64) {
        let filled = self.level + (now - self.at).max(0.0) * self.per_second;
        self.level = filled.min(f64::from(self.limit));
        self.at = now;
    }

    fn check(&self, unit: LimitUnit, requested: u64) -> Option<OverLimit> {
        let missing = requested as f64 - self.level;
        if missing <= 1e-9 {
            return None;
        }
        let never = requested > u64::from(self.limit);
        Some(OverLimit {
            unit,
            limit: self.limit,
            used: (f64::from(self.limit) - self.level).max(0.0).round() as u64,
            requested,
            wait: (!never).then(|| self.time_until(missing)),
        })
    }

    fn remaining(&self) -> RemainingLimit {
        RemainingLimit {
            limit: self.limit,
            remaining: self.level.max(0.0) as u64,
            reset_in: self.time_until(f64::from(self.limit) - self.level),
        }
    }

    /// Returns the time until this much has been refilled, rounded up to the millisecond.
    fn time_until(&self, missing: f64) -> Duration {
        let millis = (missing.max(0.0) / self.per_second.max(f64::MIN_POSITIVE) * 1000.0).ceil();
        Duration::from_millis(millis as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> TimestampAndUptime {
        TimestampAndUptime {
            clock: Timestamp::from_seconds(1_763_000_000),
            seconds,
        }
    }

    fn buckets() -> Buckets {
        Buckets::new(FaultServerKeyLimits {
            requests_per_minute: Some(2),
            tokens_per_minute: Some(600),
            ..FaultServerKeyLimits::default()
        })
    }

    #[test]
    fn a_request_is_admitted_exactly_after_the_stated_wait() {
        let mut buckets = buckets();
        assert!(buckets.take_request("a", 10, at(0.0)).1.is_ok());
        let (budget, second) = buckets.take_request("a", 10, at(0.0));
        assert!(second.is_ok());
        assert_eq!(budget.requests.unwrap().remaining, 0);
        assert_eq!(budget.tokens.unwrap().remaining, 580);
        let over = buckets.take_request("a", 10, at(0.0)).1.unwrap_err();
        assert_eq!(
            (over.unit, over.wait),
            (LimitUnit::Requests, Some(Duration::from_secs(30)))
        );
        assert!(buckets.take_request("a", 10, at(29.9)).1.is_err());
        assert!(buckets.take_request("a", 10, at(30.0)).1.is_ok());
    }

    #[test]
    fn each_key_has_its_own_limits() {
        let mut buckets = buckets();
        for _ in 0..2 {
            assert!(buckets.take_request("a", 1, at(0.0)).1.is_ok());
        }
        assert!(buckets.take_request("a", 1, at(0.0)).1.is_err());
        assert!(buckets.take_request("b", 1, at(0.0)).1.is_ok());
    }

    #[test]
    fn an_answer_can_overdraw_the_bucket_and_oversized_requests_never_fit() {
        let mut buckets = buckets();
        assert!(buckets.take_request("a", 100, at(0.0)).1.is_ok());
        assert_eq!(
            buckets.charge("a", 560, at(0.0)).tokens.unwrap().remaining,
            0
        );
        let over = buckets.take_request("a", 100, at(0.0)).1.unwrap_err();
        assert_eq!(
            (over.unit, over.wait),
            (LimitUnit::Tokens, Some(Duration::from_secs(16)))
        );
        let over = buckets.take_request("b", 601, at(0.0)).1.unwrap_err();
        assert_eq!((over.unit, over.wait), (LimitUnit::Tokens, None));
    }
}
