//! What happened, as values: one enum of typed events, the same in the core, in the store and in `events.jsonl`.
//!
//! Events are past tense and never changed. All state is a fold over them. An event that a newer unstuck wrote is
//! kept as it is and skipped by every fold.

mod answer;
mod attempt;
mod budget_reached;
mod call_events;
mod call_record;
mod decision;
mod escalation;
mod id;
mod json;
mod outcome;
mod pipeline;
mod repair;
mod run;
mod session;

pub use answer::EscalationAnswer;
pub use attempt::{
    AttemptCause, AttemptEnd, AttemptFailed, AttemptInterrupted, AttemptStarted, AttemptSucceeded,
    AttemptUsage, FailedCheck, InterruptionCause, OutputExcerpt,
};
pub use budget_reached::{BudgetReached, BudgetScope, BudgetUnit};
pub use call_events::{CallFailed, CallHeld, CallResumed, SkippedUpstream};
pub use call_record::{CallOutcome, CallRecord, FinishReason, LastCall};
pub use decision::{
    ConfigRejected, ConfigReloaded, DecisionInputs, DecisionMade, EffectiveLimits, EscalationKind,
    EscalationOpened, EscalationResolved, ModelSwitched, SessionParked, WaitEndCause, WaitEnded,
    WaitStarted,
};
pub use escalation::{AnswerOption, EscalationDeadline, EscalationDetails, PriorAttempt};
pub use id::{RunId, SessionId};
pub use outcome::{RunFinished, RunOutcome};
pub use pipeline::{
    DiagnosedCheck, IterationFinished, IterationStarted, LoopStarted, OnStuck, OutputReused,
    PipelineStarted, RoleStarted,
};
pub use repair::{
    ApprovalSource, PolicyVerdict, Proposer, RepairApproved, RepairConditions, RepairExecuted,
    RepairFailed, RepairProposed, RepairRejected, RepairSideEffects, RepairStarted,
};
pub use run::{RunKind, RunResumed, RunStarted};
pub use session::{RoleInstance, SessionFinished, SessionSpec, SessionStarted};

use serde::{Deserialize, Serialize};

use crate::failure::Kind;
use crate::time::Timestamp;

/// The version of the events that this program writes.
pub const VERSION: u32 = 1;

/// An event with its place in the log: which run, which number, when.
///
/// ```
/// use unstuck_core::event::EventRecord;
///
/// let line = r#"{"v":1,"run":"k3v9x0m2qa","seq":4,"at":"2026-11-16T02:00:00Z","event":"moon_landed","crew":3}"#;
/// let recorded: EventRecord = serde_json::from_str(line)?;
/// assert_eq!(recorded.event.name(), "moon_landed"); // not known here, and kept all the same
/// assert_eq!(serde_json::to_string(&recorded)?, line);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
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
            Unknown(UnknownEvent),
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
    WaitStarted "waiting_until" WaitStarted;
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
    ModelSwitched "model_escalated" ModelSwitched;
    /// A repair was proposed.
    RepairProposed "recovery_proposed" Box<RepairProposed>;
    /// A proposal was refused as a whole.
    RepairRejected "recovery_rejected" RepairRejected;
    /// A repair was allowed.
    RepairApproved "recovery_approved" RepairApproved;
    /// A repair began.
    RepairStarted "recovery_started" RepairStarted;
    /// A repair was run.
    RepairExecuted "recovery_executed" RepairExecuted;
    /// A repair did not work.
    RepairFailed "recovery_failed" RepairFailed;
    /// A person was asked.
    EscalationOpened "recovery_escalated" Box<EscalationOpened>;
    /// A person's question was settled.
    EscalationResolved "recovery_resolved" EscalationResolved;
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
            Self::WaitStarted(wait) => wait.session.as_ref(),
            Self::WaitEnded(wait) => wait.session.as_ref(),
            Self::SessionParked(parked) => parked.session.as_ref(),
            Self::ModelSwitched(change) => change.session.as_ref(),
            Self::RepairProposed(repair) => repair.session.as_ref(),
            Self::RepairRejected(repair) => repair.session.as_ref(),
            Self::RepairApproved(repair) => repair.session.as_ref(),
            Self::RepairStarted(repair) => repair.session.as_ref(),
            Self::RepairExecuted(repair) => repair.session.as_ref(),
            Self::RepairFailed(repair) => repair.session.as_ref(),
            Self::EscalationOpened(asked) => asked.session.as_ref(),
            Self::EscalationResolved(resolved) => resolved.session.as_ref(),
            _ => None,
        }
    }

    /// The kind of failure that it is about, where it is about one.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::AttemptFailed(attempt) => Some(attempt.diagnosis.kind),
            Self::DecisionMade(made) => Some(made.decision.kind),
            Self::CallFailed(call) => Some(call.diagnosis.kind),
            Self::EscalationOpened(asked) => Some(asked.kind),
            Self::SessionParked(parked) => Some(parked.kind),
            _ => None,
        }
    }
}

/// An event that only a newer unstuck knows.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownEvent {
    /// Its name.
    pub name: String,
    /// All that it says.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests;
