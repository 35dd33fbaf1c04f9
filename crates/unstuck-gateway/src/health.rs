//! Whether upstreams fail at present, who may find out whether one is back, and who is told when it is.
//!
//! What one process knows is here; what all processes of a store share is behind [`Recorder`](crate::Ledger).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use unstuck_core::Timestamp;

/// All upstreams, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct UpstreamHealthMap(Mutex<HashMap<String, Arc<UpstreamHealth>>>);

/// What is known of one.
#[derive(Debug)]
pub(crate) struct UpstreamHealth {
    state: Mutex<HealthState>,
    /// When it was last seen to be back.
    recovered: watch::Sender<Option<Timestamp>>,
    /// How many were told of the present recovery.
    woken_count: AtomicU32,
}

#[derive(Debug, Default)]
struct HealthState {
    /// Since when it fails; none while it answers.
    failing_since: Option<Timestamp>,
    next_probe: Option<Timestamp>,
    /// When it may be asked again first, where others are asked instead meanwhile; none while it answers.
    next_turn: Option<Timestamp>,
    /// How long that was put off last.
    last_postponement: Duration,
}

impl UpstreamHealthMap {
    /// What is known of an upstream.
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
    /// Whether it failed when it was last asked.
    pub(crate) fn is_failing(&self) -> bool {
        self.state().failing_since.is_some()
    }

    /// It failed, in a way that says that it is down.
    pub(crate) fn record_failure(&self, now: Timestamp) {
        self.state().failing_since.get_or_insert(now);
    }

    /// Somebody else is asked instead: the next call may ask it first after a while only, longer each time.
    pub(crate) fn postpone_turn(&self, now: Timestamp, (shortest, longest): (Duration, Duration)) {
        let mut state = self.state();
        let put_off = state
            .last_postponement
            .saturating_mul(2)
            .clamp(shortest, longest);
        state.last_postponement = put_off;
        state.next_turn = Some(now.after(put_off));
    }

    /// Whether a call may ask it before somebody else; of those who come together while it fails, one may.
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

    /// When it is asked before its fallback again, where others are asked instead because it fails.
    pub(crate) fn skipped_until(&self) -> Option<Timestamp> {
        let state = self.state();
        state.failing_since.and(state.next_turn)
    }

    /// It answered; whether it had failed before, and so is back.
    pub(crate) fn record_success(&self, now: Timestamp) -> bool {
        {
            let mut state = self.state();
            state.next_turn = None;
            state.last_postponement = Duration::ZERO;
            if state.failing_since.take().is_none() {
                return false;
            }
        }
        self.mark_recovered(now);
        true
    }

    /// Somebody has seen it come back; whoever waits for it hears of it.
    pub(crate) fn mark_recovered(&self, at: Timestamp) {
        self.state().next_probe = None;
        self.recovered.send_if_modified(|known| {
            let is_news = known.is_none_or(|known| known < at);
            if is_news {
                self.woken_count.store(0, Ordering::Relaxed);
                *known = Some(at);
            }
            is_news
        });
    }

    /// Hears of it when it comes back.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Timestamp>> {
        self.recovered.subscribe()
    }

    /// After which of the waves whoever hears that it is back may ask it: one, then two, then four, and so on.
    pub(crate) fn next_wave(&self) -> u32 {
        let before = self.woken_count.fetch_add(1, Ordering::Relaxed);
        (before + 1).ilog2()
    }

    /// Takes the right to find out whether it is back, where no other process shares it; else until when nobody may.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(1_790_000_000 + seconds)
    }

    #[test]
    fn one_probe_in_a_minute_until_it_is_back() {
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
    fn whoever_can_be_replaced_is_asked_now_and_then_until_it_answers() {
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
    fn who_waits_hears_of_it_and_goes_in_waves() {
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
}
