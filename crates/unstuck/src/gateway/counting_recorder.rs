//! A recorder that counts the activity of a gateway.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::{Event, RetryPolicy, Timestamp};
use unstuck_gateway::{GatewayRecorder, GatewaySession, GatewaySessionSetup, RecorderLookupFuture};
use unstuck_store::ProbeClaimOutcome;

/// Totals of the calls through a gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct GatewayCallTotals {
    pub(crate) calls: u64,
    pub(crate) recovered: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) cost: f64,
    /// Number of calls with token usage but without a known price.
    pub(crate) unpriced: u64,
}

/// A recorder that counts calls before passing them on.
pub(crate) struct CountingRecorder {
    recorder: Arc<dyn GatewayRecorder>,
    counts: Mutex<GatewayCallTotals>,
}

impl CountingRecorder {
    pub(crate) fn new(recorder: Arc<dyn GatewayRecorder>) -> Self {
        Self {
            recorder,
            counts: Mutex::default(),
        }
    }

    pub(crate) fn totals(&self) -> GatewayCallTotals {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, GatewayCallTotals> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GatewayRecorder for CountingRecorder {
    fn begin_session(
        &self,
        name: &str,
        client: Option<&str>,
        policy: &RetryPolicy,
    ) -> GatewaySessionSetup {
        self.recorder.begin_session(name, client, policy)
    }

    fn record_call(&self, record: ApiCallRecord) {
        let mut counts = self.lock();
        counts.calls += 1;
        counts.cost += record.cost_usd.unwrap_or(0.0);
        let has_used = record
            .tokens
            .is_some_and(|used| used.average_conversation() > 0);
        counts.unpriced += u64::from(record.cost_usd.is_none() && has_used);
        match record.outcome {
            ApiCallOutcome::Answered | ApiCallOutcome::Cancelled => {}
            ApiCallOutcome::Recovered => counts.recovered += 1,
            ApiCallOutcome::Failed | ApiCallOutcome::Truncated => counts.failed += 1,
            ApiCallOutcome::Refused => counts.refused += 1,
        }
        drop(counts);
        self.recorder.record_call(record);
    }

    fn record_event(&self, session: &GatewaySession, at: Timestamp, event: Event) {
        self.recorder.record_event(session, at, event);
    }

    fn claim_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> RecorderLookupFuture<'a, ProbeClaimOutcome> {
        self.recorder.claim_probe(upstream, now, every)
    }

    fn upstream_recovered_at<'a>(
        &'a self,
        upstream: &'a str,
    ) -> RecorderLookupFuture<'a, Timestamp> {
        self.recorder.upstream_recovered_at(upstream)
    }

    fn count_released_call<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
    ) -> RecorderLookupFuture<'a, u32> {
        self.recorder.count_released_call(upstream, now)
    }

    fn record_upstream_recovery(&self, upstream: &str, at: Timestamp) {
        self.recorder.record_upstream_recovery(upstream, at);
    }
}
