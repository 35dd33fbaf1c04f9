//! What happened, as values: one enum of typed events, the same in the core, in the store and in `events.jsonl`.
//!
//! Events are past tense and never changed. All state is a fold over them. An event that a newer unstuck wrote is
//! kept as it is and skipped by every fold.

mod answer;
mod attempt;
mod budget;
mod call;
mod call_failed;
mod id;
mod outcome;
mod pipeline;
mod question;
mod recovery;
mod repair;
mod run;
mod session;
mod wire;

pub use answer::Answer;
pub use attempt::{
    Answering, AttemptEnd, AttemptFailed, AttemptInterrupted, AttemptStarted, AttemptSucceeded,
    Excerpt, FailedCheck, InterruptedBy, Measured,
};
pub use budget::{BudgetReached, BudgetScope, BudgetUnit};
pub use call::{CallOutcome, CallRecord, Finish, LastCall};
pub use call_failed::{CallFailed, CallHeld, CallResumed, PassedOver};
pub use id::{RunId, SessionId};
pub use outcome::{Outcome, RunFinished};
pub use pipeline::{
    DiagnosedCheck, IterationFinished, IterationStarted, LoopStarted, OnStuck, OutputReused,
    PipelineStarted, RoleStarted,
};
pub use question::{Choice, Deadline, Shown, Tried};
pub use recovery::{
    ConfigRejected, ConfigReloaded, DecisionMade, EscalationKind, LimitsInForce, MadeFrom,
    ModelEscalated, RecoveryEscalated, RecoveryResolved, SessionParked, WaitEnded, WaitEndedBy,
    WaitingUntil,
};
pub use repair::{
    ApprovalSource, GuardWord, Proposer, RecoveryApproved, RecoveryExecuted, RecoveryFailed,
    RecoveryProposed, RecoveryRejected, RecoveryStarted, RepairConditions, RepairTraces,
};
pub use run::{RunResumed, RunStarted, Work};
pub use session::{Part, SessionFinished, SessionSpec, SessionStarted};

use serde::{Deserialize, Serialize};

use crate::failure::Kind;
use crate::moment::Timestamp;

/// The version of the events that this program writes.
pub const VERSION: u32 = 1;

/// An event with its place in the log: which run, which number, when.
///
/// ```
/// use unstuck_core::event::Recorded;
///
/// let line = r#"{"v":1,"run":"k3v9x0m2qa","seq":4,"at":"2026-11-16T02:00:00Z","event":"moon_landed","crew":3}"#;
/// let recorded: Recorded = serde_json::from_str(line)?;
/// assert_eq!(recorded.event.name(), "moon_landed"); // not known here, and kept all the same
/// assert_eq!(serde_json::to_string(&recorded)?, line);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The version in which it was written.
    pub version: u32,
    /// The run that it belongs to.
    pub run: RunId,
    /// Its number in that run, from 1.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

macro_rules! events {
    ($($(#[$doc:meta])+ $variant:ident $name:literal $payload:ty;)+) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "event")]
        pub enum Event {
            $($(#[$doc])+ #[serde(rename = $name)] $variant($payload),)+
            /// Something that only a newer unstuck knows, kept word for word.
            #[serde(skip)]
            Unknown(Unknown),
        }

        impl Event {
            /// The names of all events that are known here.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Its name on every wire.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Unknown(unknown) => &unknown.name,
                }
            }
        }

        $(impl From<$payload> for Event {
            fn from(payload: $payload) -> Self {
                Self::$variant(payload)
            }
        })+
    };
}

events! {
    /// A run began.
    RunStarted "run_started" Box<RunStarted>;
    /// A run was taken up again after its process had ended.
    RunResumed "run_resumed" RunResumed;
    /// An iteration of a loop began.
    IterationStarted "iteration_started" IterationStarted;
    /// An iteration of a loop is over.
    IterationFinished "iteration_finished" IterationFinished;
    /// The output of an earlier run was taken over.
    OutputReused "output_reused" OutputReused;
    /// A role of a pipeline began.
    SessionStarted "session_started" Box<SessionStarted>;
    /// A role of a pipeline came to its end, or to a stop.
    SessionFinished "session_finished" Box<SessionFinished>;
    /// One try of a session began.
    AttemptStarted "attempt_started" Box<AttemptStarted>;
    /// A try failed, and it is known what kind of failure it was.
    AttemptFailed "attempt_failed" Box<AttemptFailed>;
    /// A try did what it should.
    AttemptSucceeded "attempt_succeeded" Box<AttemptSucceeded>;
    /// A try was cut off from outside: by a person, or with the process that supervised it.
    AttemptInterrupted "attempt_interrupted" AttemptInterrupted;
    /// It was decided what to do about a failure.
    DecisionMade "decision_made" Box<DecisionMade>;
    /// A wait began.
    WaitingUntil "waiting_until" WaitingUntil;
    /// A wait was over before its time.
    WaitEnded "wait_ended" WaitEnded;
    /// There was no progress for so long that a session is only probed now and then.
    SessionParked "session_parked" SessionParked;
    /// One try of a call of an LLM API failed.
    CallFailed "call_failed" Box<CallFailed>;
    /// A call of an LLM API waits for its turn.
    CallHeld "call_held" CallHeld;
    /// A call of an LLM API that waited is sent now.
    CallResumed "call_resumed" CallResumed;
    /// A call of an LLM API that did not simply work is over.
    CallFinished "call_finished" Box<CallRecord>;
    /// A session went over to another model.
    ModelEscalated "model_escalated" ModelEscalated;
    /// A repair was proposed.
    RecoveryProposed "recovery_proposed" Box<RecoveryProposed>;
    /// A proposal was refused as a whole.
    RecoveryRejected "recovery_rejected" RecoveryRejected;
    /// A repair was allowed.
    RecoveryApproved "recovery_approved" RecoveryApproved;
    /// A repair began.
    RecoveryStarted "recovery_started" RecoveryStarted;
    /// A repair was run.
    RecoveryExecuted "recovery_executed" RecoveryExecuted;
    /// A repair did not work.
    RecoveryFailed "recovery_failed" RecoveryFailed;
    /// A person was asked.
    RecoveryEscalated "recovery_escalated" Box<RecoveryEscalated>;
    /// A person's question was settled.
    RecoveryResolved "recovery_resolved" RecoveryResolved;
    /// A changed configuration was taken over.
    ConfigReloaded "config_reloaded" ConfigReloaded;
    /// A changed configuration was refused.
    ConfigRejected "config_rejected" ConfigRejected;
    /// A run came to its end, or to a stop.
    RunFinished "run_finished" RunFinished;
}

impl Event {
    /// The session that it belongs to, where it belongs to one.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::RunStarted(run) => run.sole_session().map(|spec| &spec.session),
            Self::SessionStarted(started) => Some(&started.spec.session),
            Self::SessionFinished(finished) => Some(&finished.session),
            Self::AttemptStarted(attempt) => Some(&attempt.session),
            Self::AttemptFailed(attempt) => Some(&attempt.end.session),
            Self::AttemptSucceeded(attempt) => Some(&attempt.end.session),
            Self::AttemptInterrupted(attempt) => Some(&attempt.session),
            Self::CallFailed(call) => Some(&call.session),
            Self::CallHeld(call) => Some(&call.session),
            Self::CallResumed(call) => Some(&call.session),
            Self::CallFinished(call) => Some(&call.session),
            Self::DecisionMade(made) => made.session.as_ref(),
            Self::WaitingUntil(wait) => wait.session.as_ref(),
            Self::WaitEnded(wait) => wait.session.as_ref(),
            Self::SessionParked(parked) => parked.session.as_ref(),
            Self::ModelEscalated(change) => change.session.as_ref(),
            Self::RecoveryProposed(repair) => repair.session.as_ref(),
            Self::RecoveryRejected(repair) => repair.session.as_ref(),
            Self::RecoveryApproved(repair) => repair.session.as_ref(),
            Self::RecoveryStarted(repair) => repair.session.as_ref(),
            Self::RecoveryExecuted(repair) => repair.session.as_ref(),
            Self::RecoveryFailed(repair) => repair.session.as_ref(),
            Self::RecoveryEscalated(asked) => asked.session.as_ref(),
            Self::RecoveryResolved(resolved) => resolved.session.as_ref(),
            _ => None,
        }
    }

    /// The kind of failure that it is about, where it is about one.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::AttemptFailed(attempt) => Some(attempt.diagnosis.kind),
            Self::DecisionMade(made) => Some(made.decision.kind),
            Self::CallFailed(call) => Some(call.diagnosis.kind),
            Self::RecoveryEscalated(asked) => Some(asked.kind),
            Self::SessionParked(parked) => Some(parked.kind),
            _ => None,
        }
    }
}

/// An event that only a newer unstuck knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Unknown {
    /// Its name.
    pub name: String,
    /// All that it says.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests;
