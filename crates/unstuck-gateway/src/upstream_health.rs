//! Upstream health: failing upstreams, probe permits, and notification of recoveries.
//!
//! One process's knowledge is here; the state shared by all processes of a store is behind
//! [`GatewayRecorder`](crate::GatewayRecorder).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use unstuck_core::Timestamp;

/// The health of all upstreams, by URL.
#[derive(Debug, Default)]
pub(crate) struct UpstreamHealthMap(Mutex<HashMap<String, Arc<UpstreamHealth>>>);

/// The health of one upstream.
#[derive(Debug)]
pub(crate) struct UpstreamHealth {
    state: Mutex<HealthState>,
    /// The time when it was last seen to be back.
    recovered: watch::Sender<Option<Timestamp>>,
    /// The number of calls released by the current recovery.
    woken_count: AtomicU32,
}

#[derive(Debug, Default)]
struct HealthState {
    /// The time of the first failure; `None` while it answers.
    failing_since: Option<Timestamp>,
    /// The time of the latest failure since then.
    failed_at: Option<Timestamp>,
    next_probe: Option<Timestamp>,
    /// True if a request was refused or broke off since the latest success or recovery.
    has_failed_again: bool,
    /// The time when it may be used again before its fallback; `None` while it answers.
    next_turn: Option<Timestamp>,
    /// The last postponement.
    last_postponement: Duration,
}

impl UpstreamHealthMap {
    /// Returns the health of an upstream.
    pub(crate) fn get(&self, url: &str) -> Arc<UpstreamHealth> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(health) = known.get(url) {
            return Arc::clone(health);
        }
        let health = Arc::new(UpstreamHealth {
            state: Mutex::default(),
            recovered: watch::Sender::new(None),
            woken_count: AtomicU32::new(0),
        });
        known.insert(url.to_owned(), Arc::clone(&health));
        health
    }
}

impl UpstreamHealth {
    /// Returns true if the last request failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.state().failing_since.is_some()
    }

    /// Records a failure that means the upstream is down.
    pub(crate) fn record_failure(&self, now: Timestamp) {
        let mut state = self.state();
        state.failing_since.get_or_insert(now);
        state.failed_at = Some(now);
    }

    /// Records a request that was refused by a limit, or whose response broke off: those still waiting go on waiting.
    pub(crate) fn record_setback(&self) {
        self.state().has_failed_again = true;
    }

    /// Returns true if the latest request failed in a way for which others wait.
    pub(crate) fn has_failed_again(&self) -> bool {
        let recovered = *self.recovered.borrow();
        let state = self.state();
        // If another process saw the recovery, the failures before it say nothing any more.
        let is_failing = state.failing_since.is_some() && state.failed_at > recovered;
        state.has_failed_again || is_failing
    }

    /// Postpones the next use before the fallback, longer each time.
    pub(crate) fn postpone_turn(&self, now: Timestamp, (shortest, longest): (Duration, Duration)) {
        let mut state = self.state();
        let put_off = state
            .last_postponement
            .saturating_mul(2)
            .clamp(shortest, longest);
        state.last_postponement = put_off;
        state.next_turn = Some(now.after(put_off));
    }

    /// Returns true if a call may use it before its fallback; while it fails, only one of several concurrent calls may.
    pub(crate) fn take_turn(&self, now: Timestamp) -> bool {
        let mut state = self.state();
        let Some(next) = state.next_turn else {
            return true;
        };
        let is_due = next <= now;
        if is_due {
            state.next_turn = Some(now.after(state.last_postponement));
        }
        is_due
    }

    /// Returns the time when it is used before its fallback again, if it is skipped because it fails.
    pub(crate) fn skipped_until(&self) -> Option<Timestamp> {
        let state = self.state();
        state.failing_since.and(state.next_turn)
    }

    /// Records a success; returns true if it had failed before and has recovered.
    pub(crate) fn record_success(&self, now: Timestamp) -> bool {
        {
            let mut state = self.state();
            state.next_turn = None;
            state.last_postponement = Duration::ZERO;
            state.has_failed_again = false;
            if state.failing_since.take().is_none() {
                return false;
            }
        }
        self.mark_recovered(now);
        true
    }

    /// Records a recovery and wakes the waiting calls.
    pub(crate) fn mark_recovered(&self, at: Timestamp) {
        self.state().next_probe = None;
        self.recovered.send_if_modified(|known| {
            let is_news = known.is_none_or(|known| known < at);
            if is_news {
                self.state().has_failed_again = false;
                self.woken_count.store(0, Ordering::Relaxed);
                *known = Some(at);
            }
            is_news
        });
    }

    /// Returns a receiver of recovery times.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Timestamp>> {
        self.recovered.subscribe()
    }

    /// Returns the release wave of the next waiting call of this process.
    pub(crate) fn next_wave(&self) -> u32 {
        let before = self.woken_count.fetch_add(1, Ordering::Relaxed);
        release_wave(before.saturating_add(1))
    }

    /// Claims the probe permit within this process, or returns the time before which no probe is allowed.
    pub(crate) fn claim_probe(&self, now: Timestamp, every: Duration) -> Result<(), Timestamp> {
        let mut state = self.state();
        match state.next_probe {
            Some(next) if next > now => Err(next),
            _ => {
                state.next_probe = Some(now.after(every));
                Ok(())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the wave in which the call at a position, from 1, is released: one call, then two, then four, and so on.
pub(crate) fn release_wave(position: u32) -> u32 {
    position.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(1_790_000_000 + seconds)
    }

    #[test]
    fn one_probe_per_minute_until_recovery() {
        let health = UpstreamHealthMap::default().get("u");
        let minute = Duration::from_secs(60);
        health.record_failure(at(0));
        assert_eq!(health.claim_probe(at(0), minute), Ok(()));
        assert_eq!(health.claim_probe(at(59), minute), Err(at(60)));
        assert_eq!(health.claim_probe(at(60), minute), Ok(()));
        assert!(health.is_failing() && health.record_success(at(61)));
        assert!(!health.is_failing() && !health.record_success(at(62)));
        assert_eq!(health.claim_probe(at(62), minute), Ok(()));
    }

    #[test]
    fn failing_upstream_with_fallback_is_tried_now_and_then() {
        let health = UpstreamHealthMap::default().get("u");
        let range = (Duration::from_secs(1), Duration::from_secs(10));
        assert!(health.take_turn(at(0)) && health.take_turn(at(0)));
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..6 {
            health.record_failure(now);
            health.postpone_turn(now, range);
            let start = now;
            while !health.take_turn(now) {
                now = now.after(Duration::from_secs(1));
            }
            assert!(!health.take_turn(now), "one of those who come together");
            waits.push(now.since(start).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert!(health.record_success(now));
        assert!(health.take_turn(now) && health.take_turn(now));
    }

    #[test]
    fn waiting_calls_are_released_in_waves() {
        let health = UpstreamHealthMap::default().get("u");
        let heard = health.subscribe();
        health.record_failure(at(0));
        health.record_success(at(5));
        assert_eq!(*heard.borrow(), Some(at(5)));
        let waves: Vec<_> = (0..7).map(|_| health.next_wave()).collect();
        assert_eq!(waves, [0, 1, 1, 2, 2, 2, 2]);
        health.record_failure(at(6));
        health.record_success(at(7));
        assert_eq!(health.next_wave(), 0);
    }

    #[test]
    fn a_recovery_seen_by_another_process_ends_the_failures_before_it() {
        let health = UpstreamHealthMap::default().get("u");
        health.record_failure(at(0));
        health.record_failure(at(2));
        health.mark_recovered(at(1));
        assert!(health.has_failed_again(), "it failed after this recovery");
        health.mark_recovered(at(3));
        assert!(!health.has_failed_again());
        assert!(health.record_success(at(4)));
        health.record_failure(at(5));
        assert!(health.has_failed_again() && health.record_success(at(6)));
    }

    #[test]
    fn a_setback_stops_the_release_until_the_next_success() {
        let health = UpstreamHealthMap::default().get("u");
        health.mark_recovered(at(1));
        health.record_setback();
        assert!(health.has_failed_again() && !health.is_failing());
        health.mark_recovered(at(1));
        assert!(health.has_failed_again(), "this recovery was before it");
        health.mark_recovered(at(2));
        assert!(!health.has_failed_again());
        health.record_setback();
        health.record_success(at(3));
        assert!(!health.has_failed_again());
    }
}
