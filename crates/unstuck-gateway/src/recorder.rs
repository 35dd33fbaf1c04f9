//! Recording of calls and events, and session events for supervisors.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::{ApiCallRecord, SkippedUpstream};
use unstuck_core::{Diagnosis, Event, RetryPolicy, RunId, Timestamp};
use unstuck_store::ProbeClaimOutcome;

use crate::loop_detection::ApiLoopSignal;
use crate::session::{GatewaySession, GatewaySessionSetup};

/// Records calls and events; no method may block.
pub trait GatewayRecorder: Send + Sync {
    /// Starts the session of an unknown client with its first call; returns the run that it belongs to.
    fn begin_session(
        &self,
        name: &str,
        client: Option<&str>,
        policy: &RetryPolicy,
    ) -> GatewaySessionSetup;

    /// Records a finished call.
    fn record_call(&self, record: ApiCallRecord);

    /// Records an event of a session.
    fn record_event(&self, session: &GatewaySession, at: Timestamp, event: Event);

    /// Claims the permit to probe an upstream; `None` if no other process shares it.
    fn claim_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> RecorderLookupFuture<'a, ProbeClaimOutcome>;

    /// Returns the time when another process last saw the upstream recover; `None` if none shares it.
    fn upstream_recovered_at<'a>(
        &'a self,
        upstream: &'a str,
    ) -> RecorderLookupFuture<'a, Timestamp>;

    /// Counts a call that an upstream's recovery releases, and returns its position among those of all processes, from
    /// 1; `None` if no other process shares the upstream.
    fn count_released_call<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
    ) -> RecorderLookupFuture<'a, u32>;

    /// Announces the recovery of an upstream to the processes that share it.
    fn record_upstream_recovery(&self, upstream: &str, at: Timestamp);
}

/// The future of a lookup in the recorder.
pub type RecorderLookupFuture<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// A recorder that records nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullRecorder;

impl GatewayRecorder for NullRecorder {
    fn begin_session(
        &self,
        name: &str,
        _: Option<&str>,
        policy: &RetryPolicy,
    ) -> GatewaySessionSetup {
        let run = RunId::new("gateway");
        GatewaySessionSetup {
            name: name.to_owned(),
            session: run.session_id(1),
            run,
            project: String::new(),
            policy: policy.clone(),
            budget: None,
            spent: 0.0,
            escalates: false,
            agent: None,
        }
    }

    fn record_call(&self, _: ApiCallRecord) {}

    fn record_event(&self, _: &GatewaySession, _: Timestamp, _: Event) {}

    fn claim_probe<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
        _: Duration,
    ) -> RecorderLookupFuture<'a, ProbeClaimOutcome> {
        Box::pin(std::future::ready(None))
    }

    fn upstream_recovered_at<'a>(&'a self, _: &'a str) -> RecorderLookupFuture<'a, Timestamp> {
        Box::pin(std::future::ready(None))
    }

    fn count_released_call<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
    ) -> RecorderLookupFuture<'a, u32> {
        Box::pin(std::future::ready(None))
    }

    fn record_upstream_recovery(&self, _: &str, _: Timestamp) {}
}

/// A live event for the supervisor of a session.
#[derive(Debug, Clone)]
pub struct GatewaySessionEvent {
    /// The session.
    pub session: Arc<str>,
    /// The kind of event.
    pub kind: GatewaySessionEventKind,
}

/// The kind of a session event.
#[derive(Debug, Clone)]
pub enum GatewaySessionEventKind {
    /// A held call is retried at once, as a person requested.
    RetryRequested,
    /// A call failed and is retried.
    Retrying {
        /// The diagnosis of the failure.
        diagnosis: Arc<Diagnosis>,
        /// The action, in one sentence.
        reason: String,
        /// The time of the next attempt.
        until: Timestamp,
    },
    /// A call succeeded after a failure.
    Recovered {
        /// The number of attempts.
        attempts: u32,
    },
    /// A call failed permanently, and the client got an error.
    GaveUp {
        /// The diagnosis of the failure.
        diagnosis: Arc<Diagnosis>,
        /// The reason for not retrying, in one sentence.
        reason: String,
    },
    /// The session continues with another model.
    ModelSwitched {
        /// The previous model.
        from: String,
        /// The new model.
        to: String,
    },
    /// A fallback was skipped although an upstream failed.
    UpstreamSkipped(SkippedUpstream),
    /// The agent is stuck in a loop.
    LoopDetected(ApiLoopSignal),
    /// The calls of the session are held until a human answers.
    Held {
        /// The id of the escalation.
        escalation: String,
        /// The answer that releases the calls.
        answer: EscalationAnswer,
    },
    /// A budget is exhausted.
    BudgetExhausted {
        /// The budget, in one sentence.
        sentence: String,
    },
    /// The cost of a call is unknown, so the budget cannot be enforced.
    CostUnknown {
        /// The cause and the remedy, in one sentence.
        sentence: String,
    },
}

/// Broadcasts session events to subscribers.
#[derive(Debug, Clone)]
pub(crate) struct EventBus(broadcast::Sender<GatewaySessionEvent>);

impl EventBus {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(256))
    }

    pub(crate) fn publish(&self, session: &GatewaySession, what: GatewaySessionEventKind) {
        // There may be no subscriber.
        let _ = self.0.send(GatewaySessionEvent {
            session: session.name(),
            kind: what,
        });
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<GatewaySessionEvent> {
        self.0.subscribe()
    }
}
