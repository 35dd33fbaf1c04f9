//! Counts what a gateway does while it is written down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unstuck_core::event::{CallOutcome, CallRecord};
use unstuck_core::{Event, RetryPolicy, Timestamp};
use unstuck_gateway::{Ledger, Lookup, Session, SessionSetup};
use unstuck_store::ProbeSlot;

/// What a gateway did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) recovered: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) cost: f64,
    /// How many used tokens whose price is not known.
    pub(crate) unpriced: u64,
}

/// Counts what is written down.
pub(crate) struct Counting {
    ledger: Arc<dyn Ledger>,
    counts: Mutex<Counts>,
}

impl Counting {
    pub(crate) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self {
            ledger,
            counts: Mutex::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for Counting {
    fn begin(&self, name: &str, client: Option<&str>, policy: &RetryPolicy) -> SessionSetup {
        self.ledger.begin(name, client, policy)
    }

    fn call(&self, record: CallRecord) {
        let mut counts = self.lock();
        counts.calls += 1;
        counts.cost += record.cost_usd.unwrap_or(0.0);
        let has_used = record.tokens.is_some_and(|used| used.conversation() > 0);
        counts.unpriced += u64::from(record.cost_usd.is_none() && has_used);
        match record.outcome {
            CallOutcome::Answered | CallOutcome::Cancelled => {}
            CallOutcome::Recovered => counts.recovered += 1,
            CallOutcome::Failed | CallOutcome::Cut => counts.failed += 1,
            CallOutcome::Refused => counts.refused += 1,
        }
        drop(counts);
        self.ledger.call(record);
    }

    fn event(&self, session: &Session, at: Timestamp, event: Event) {
        self.ledger.event(session, at, event);
    }

    fn take_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> Lookup<'a, ProbeSlot> {
        self.ledger.take_probe(upstream, now, every)
    }

    fn recovered_at<'a>(&'a self, upstream: &'a str) -> Lookup<'a, Timestamp> {
        self.ledger.recovered_at(upstream)
    }

    fn recovered(&self, upstream: &str, at: Timestamp) {
        self.ledger.recovered(upstream, at);
    }
}
