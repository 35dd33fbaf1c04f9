//! What the gateway writes down, and what it tells whoever supervises a session.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use unstuck_core::event::{CallRecord, PassedOver};
use unstuck_core::question::Answer;
use unstuck_core::{Diagnosis, Event, RetryPolicy, RunId, Timestamp};
use unstuck_store::ProbeSlot;

use crate::session::{Session, SessionSetup};
use crate::watch::Sign;

/// Where calls and events are written down; none of it may wait.
pub trait Ledger: Send + Sync {
    /// A client whose session is not known yet makes its first call; says to which run it belongs from now on.
    fn begin(&self, name: &str, client: Option<&str>, policy: &RetryPolicy) -> SessionSetup;

    /// A call is over.
    fn call(&self, record: CallRecord);

    /// Something happened to a session.
    fn event(&self, session: &Session, at: Timestamp, event: Event);

    /// Asks for the right to find out whether an upstream is back; none where no other process shares it.
    fn take_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> Lookup<'a, ProbeSlot>;

    /// When another process has last seen that an upstream is back; none where none shares it.
    fn recovered_at<'a>(&'a self, upstream: &'a str) -> Lookup<'a, Timestamp>;

    /// An upstream is back: whoever shares it is told.
    fn recovered(&self, upstream: &str, at: Timestamp);
}

/// What a ledger has to look up.
pub type Lookup<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// Writes nothing down.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forgetful;

impl Ledger for Forgetful {
    fn begin(&self, name: &str, _: Option<&str>, policy: &RetryPolicy) -> SessionSetup {
        let run = RunId::new("gateway");
        SessionSetup {
            name: name.to_owned(),
            session: run.session(1),
            run,
            project: String::new(),
            policy: policy.clone(),
            budget: None,
            spent: 0.0,
            asks: false,
            agent: None,
        }
    }

    fn call(&self, _: CallRecord) {}

    fn event(&self, _: &Session, _: Timestamp, _: Event) {}

    fn take_probe<'a>(&'a self, _: &'a str, _: Timestamp, _: Duration) -> Lookup<'a, ProbeSlot> {
        Box::pin(std::future::ready(None))
    }

    fn recovered_at<'a>(&'a self, _: &'a str) -> Lookup<'a, Timestamp> {
        Box::pin(std::future::ready(None))
    }

    fn recovered(&self, _: &str, _: Timestamp) {}
}

/// What whoever supervises a session is told while it happens.
#[derive(Debug, Clone)]
pub struct Notice {
    /// The session.
    pub session: Arc<str>,
    /// What happened.
    pub what: Noticed,
}

/// What happened to a session.
#[derive(Debug, Clone)]
pub enum Noticed {
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
    Moved {
        /// The model so far.
        from: String,
        /// The model from now on.
        to: String,
    },
    /// Somebody could have been asked instead of an upstream that failed, and was not.
    PassedOver(PassedOver),
    /// The agent goes in circles.
    Circling(Sign),
    /// Its calls are held until a person answers.
    Held {
        /// The id of the question.
        question: String,
        /// The answer that lets them through.
        answer: Answer,
    },
    /// A budget is used up.
    SpentUp {
        /// Which, in one sentence.
        sentence: String,
    },
    /// There is a budget, and what a call cost is not known: no budget holds such calls.
    Uncounted {
        /// Why it is not known, and what to do about it, in one sentence.
        sentence: String,
    },
}

/// Tells whoever listens.
#[derive(Debug, Clone)]
pub(crate) struct Crier(broadcast::Sender<Notice>);

impl Crier {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(256))
    }

    pub(crate) fn tell(&self, session: &Session, what: Noticed) {
        // Nobody may be listening.
        let _ = self.0.send(Notice {
            session: session.name(),
            what,
        });
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}
