//! What the gateway writes down, and what it tells whoever supervises a session.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::{CallRecord, SkippedUpstream};
use unstuck_core::{Diagnosis, Event, RetryPolicy, RunId, Timestamp};
use unstuck_store::ProbeGrant;

use crate::loop_detection::ApiLoopSignal;
use crate::session::{GatewaySession, SessionSetup};

/// Where calls and events are written down; none of it may wait.
pub trait Recorder: Send + Sync {
    /// A client whose session is not known yet makes its first call; says to which run it belongs from now on.
    fn begin_session(&self, name: &str, client: Option<&str>, policy: &RetryPolicy)
    -> SessionSetup;

    /// A call is over.
    fn record_call(&self, record: CallRecord);

    /// Something happened to a session.
    fn record_event(&self, session: &GatewaySession, at: Timestamp, event: Event);

    /// Asks for the right to find out whether an upstream is back; none where no other process shares it.
    fn claim_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> Lookup<'a, ProbeGrant>;

    /// When another process has last seen that an upstream is back; none where none shares it.
    fn upstream_recovered_at<'a>(&'a self, upstream: &'a str) -> Lookup<'a, Timestamp>;

    /// An upstream is back: whoever shares it is told.
    fn record_upstream_recovery(&self, upstream: &str, at: Timestamp);
}

/// What a ledger has to look up.
pub type Lookup<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// Writes nothing down.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {
    fn begin_session(&self, name: &str, _: Option<&str>, policy: &RetryPolicy) -> SessionSetup {
        let run = RunId::new("gateway");
        SessionSetup {
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

    fn record_call(&self, _: CallRecord) {}

    fn record_event(&self, _: &GatewaySession, _: Timestamp, _: Event) {}

    fn claim_probe<'a>(&'a self, _: &'a str, _: Timestamp, _: Duration) -> Lookup<'a, ProbeGrant> {
        Box::pin(std::future::ready(None))
    }

    fn upstream_recovered_at<'a>(&'a self, _: &'a str) -> Lookup<'a, Timestamp> {
        Box::pin(std::future::ready(None))
    }

    fn record_upstream_recovery(&self, _: &str, _: Timestamp) {}
}

/// What whoever supervises a session is told while it happens.
#[derive(Debug, Clone)]
pub struct SessionEvent {
    /// The session.
    pub session: Arc<str>,
    /// What happened.
    pub kind: SessionEventKind,
}

/// What happened to a session.
#[derive(Debug, Clone)]
pub enum SessionEventKind {
    /// A call failed and is tried again.
    Retrying {
        /// What failed.
        diagnosis: Arc<Diagnosis>,
        /// What is done, in one sentence.
        reason: String,
        /// When the next try begins.
        until: Timestamp,
    },
    /// A call succeeded after something had failed.
    Recovered {
        /// How often it was tried.
        attempts: u32,
    },
    /// A call failed, and the client was told.
    GaveUp {
        /// What failed.
        diagnosis: Arc<Diagnosis>,
        /// Why it is not tried again, in one sentence.
        reason: String,
    },
    /// The session goes on with another model.
    ModelSwitched {
        /// The model so far.
        from: String,
        /// The model from now on.
        to: String,
    },
    /// Somebody could have been asked instead of an upstream that failed, and was not.
    UpstreamSkipped(SkippedUpstream),
    /// The agent goes in circles.
    LoopDetected(ApiLoopSignal),
    /// Its calls are held until a person answers.
    Held {
        /// The id of the question.
        escalation: String,
        /// The answer that lets them through.
        answer: EscalationAnswer,
    },
    /// A budget is used up.
    BudgetExhausted {
        /// Which, in one sentence.
        sentence: String,
    },
    /// There is a budget, and what a call cost is not known: no budget holds such calls.
    CostUnknown {
        /// Why it is not known, and what to do about it, in one sentence.
        sentence: String,
    },
}

/// Tells whoever listens.
#[derive(Debug, Clone)]
pub(crate) struct EventBus(broadcast::Sender<SessionEvent>);

impl EventBus {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(256))
    }

    pub(crate) fn publish(&self, session: &GatewaySession, what: SessionEventKind) {
        // Nobody may be listening.
        let _ = self.0.send(SessionEvent {
            session: session.name(),
            kind: what,
        });
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<SessionEvent> {
        self.0.subscribe()
    }
}
