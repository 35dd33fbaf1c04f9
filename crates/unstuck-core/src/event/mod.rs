//! Typed events: one enum shared by the core, the store and `events.jsonl`.
//!
//! Events are past tense and never changed. All state is a fold over them. An event from a newer version is kept
//! unchanged and skipped by every fold.

mod api_call_record;
mod api_call_recovery;
mod attempt;
mod budget_reached;
mod decisions_and_escalations;
mod escalation_answer;
mod escalation_details;
mod json;
mod pipeline;
mod repair;
mod run;
mod run_ids;
mod run_outcome;
mod session;

pub use api_call_record::{ApiCallOutcome, ApiCallRecord, FinishReason, LastApiCall};
pub use api_call_recovery::{CallFailed, CallHeld, CallResumed, SkippedUpstream};
pub use attempt::{
    AttemptEnd, AttemptFailed, AttemptInterrupted, AttemptStarted, AttemptSucceeded, AttemptUsage,
    FailedCheck, InterruptionCause, OutputExcerpt, RetryCause,
};
pub use budget_reached::{BudgetReached, BudgetScope, BudgetUnit};
pub use decisions_and_escalations::{
    ConfigRejected, ConfigReloaded, DecisionMade, EarlyWaitEndCause, EffectiveRetryLimits,
    EscalationKind, EscalationOpened, EscalationResolved, ModelSwitched, RecordedDecisionInputs,
    SessionParked, WaitEnded, WaitStarted,
};
pub use escalation_answer::EscalationAnswer;
pub use escalation_details::{
    AnswerOption, EscalationDeadline, EscalationDetails, EscalationPriorAttempt,
};
pub use pipeline::{
    DiagnosedCheck, IterationFinished, IterationStarted, OnStuck, OutputReused,
    RecordedPipelineLoopSettings, RecordedPipelineSettings, RecordedRoleSettings,
};
pub use repair::{
    ApprovalSource, PolicyVerdict, RepairApproved, RepairConfinement, RepairExecuted, RepairFailed,
    RepairProposalOrigin, RepairProposed, RepairRejected, RepairSandboxReport, RepairStarted,
};
pub use run::{RunKind, RunResumed, RunStarted};
pub use run_ids::{RunId, SessionId};
pub use run_outcome::{RunFinished, RunOutcome};
pub use session::{RoleInstance, SessionFinished, SessionSpec, SessionStarted};

use serde::{Deserialize, Serialize};

use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The event schema version that this program writes.
pub const VERSION: u32 = 2;

/// An event with its position in the log: run, sequence number and time.
///
/// ```
/// use unstuck_core::event::EventRecord;
///
/// let line = r#"{"v":1,"run":"k3v9x0m2qa","seq":4,"at":"2026-11-16T02:00:00Z","event":"moon_landed","crew":3}"#;
/// let recorded: EventRecord = serde_json::from_str(line)?;
/// assert_eq!(recorded.event.name(), "moon_landed"); // an unknown event is kept
/// assert_eq!(serde_json::to_string(&recorded)?, line);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    /// The schema version of the record.
    pub version: u32,
    /// The run of the event.
    pub run: RunId,
    /// The sequence number in the run, from 1.
    pub seq: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The event.
    pub event: Event,
}

macro_rules! events {
    ($($(#[$doc:meta])+ $variant:ident $name:literal $payload:ty;)+) => {
        /// An event.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "event")]
        pub enum Event {
            $($(#[$doc])+ #[serde(rename = $name)] $variant($payload),)+
            /// An event of a newer version, kept verbatim.
            #[serde(skip)]
            Unknown(UnknownEvent),
        }

        impl Event {
            /// The names of all known events.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Returns the wire name.
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
    /// A run started.
    RunStarted "run_started" Box<RunStarted>;
    /// A run was resumed after its process had ended.
    RunResumed "run_resumed" RunResumed;
    /// A loop iteration started.
    IterationStarted "iteration_started" IterationStarted;
    /// A loop iteration finished.
    IterationFinished "iteration_finished" IterationFinished;
    /// An output of an earlier run was reused.
    OutputReused "output_reused" OutputReused;
    /// A role of a pipeline started.
    SessionStarted "session_started" Box<SessionStarted>;
    /// A role of a pipeline finished or stopped.
    SessionFinished "session_finished" Box<SessionFinished>;
    /// An attempt of a session started.
    AttemptStarted "attempt_started" Box<AttemptStarted>;
    /// An attempt failed and was diagnosed.
    AttemptFailed "attempt_failed" Box<AttemptFailed>;
    /// An attempt succeeded.
    AttemptSucceeded "attempt_succeeded" Box<AttemptSucceeded>;
    /// An attempt was interrupted from outside: by a human, or with its supervising process.
    AttemptInterrupted "attempt_interrupted" AttemptInterrupted;
    /// A decision about a failure was made.
    DecisionMade "decision_made" Box<DecisionMade>;
    /// A wait started.
    WaitStarted "waiting_until" WaitStarted;
    /// A wait ended early.
    WaitEnded "wait_ended" WaitEnded;
    /// A session was parked: it is only probed now and then.
    SessionParked "session_parked" SessionParked;
    /// An API attempt failed.
    CallFailed "call_failed" Box<CallFailed>;
    /// An API call is held.
    CallHeld "call_held" CallHeld;
    /// A held API call is sent now.
    CallResumed "call_resumed" CallResumed;
    /// An API call that needed recovery finished.
    CallFinished "call_finished" Box<ApiCallRecord>;
    /// A session switched to another model.
    ModelSwitched "model_escalated" ModelSwitched;
    /// A repair was proposed.
    RepairProposed "recovery_proposed" Box<RepairProposed>;
    /// A repair document was rejected.
    RepairRejected "recovery_rejected" RepairRejected;
    /// A repair was approved.
    RepairApproved "recovery_approved" RepairApproved;
    /// A repair started.
    RepairStarted "recovery_started" RepairStarted;
    /// A repair was executed.
    RepairExecuted "recovery_executed" RepairExecuted;
    /// A repair failed.
    RepairFailed "recovery_failed" RepairFailed;
    /// An escalation was opened.
    EscalationOpened "recovery_escalated" Box<EscalationOpened>;
    /// An escalation was resolved.
    EscalationResolved "recovery_resolved" EscalationResolved;
    /// A changed configuration was applied.
    ConfigReloaded "config_reloaded" ConfigReloaded;
    /// A changed configuration was rejected.
    ConfigRejected "config_rejected" ConfigRejected;
    /// A run finished or stopped.
    RunFinished "run_finished" RunFinished;
}

impl Event {
    /// Returns the session of the event, if it belongs to one.
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

    /// Returns the failure kind of the event, if it has one.
    pub fn kind(&self) -> Option<FailureKind> {
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

/// An event of a newer version.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownEvent {
    /// The name of the event.
    pub name: String,
    /// All its fields.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests;
