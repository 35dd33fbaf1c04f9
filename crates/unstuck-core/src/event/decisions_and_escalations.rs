//! Events about decisions, waits, model switches, escalations and configuration changes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget_reached::BudgetReached;
use super::escalation_answer::EscalationAnswer;
use super::escalation_details::EscalationDetails;
use super::pipeline::RecordedPipelineSettings;
use super::run_ids::SessionId;
use crate::decision::{
    ConcreteAttemptChange, CostEstimate, Decision, EscalationReason, EscalationTrigger,
    ModelSwitch, ProposedAction, RereadCost, SuccessRates, WaitPurpose,
};
use crate::diagnosis::RetryAfterSource;
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// A decision about a failure was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionMade {
    /// The session; none in the log of a single-session run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The number of the failed attempt.
    pub number: u32,
    /// The decision.
    pub decision: Decision,
    /// The inputs of the decision, besides the events before it.
    #[serde(rename = "basis", alias = "made_from")]
    pub inputs: RecordedDecisionInputs,
}

/// The inputs of a decision besides the events before it, recorded so that it can be explained and replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedDecisionInputs {
    /// The version of the knowledge.
    pub knowledge: String,
    /// The fingerprint of the policy.
    pub policy_hash: String,
    /// The limits in effect for this kind.
    pub limits: EffectiveRetryLimits,
    /// The learned success rates of this kind's strategies.
    #[serde(default, skip_serializing_if = "is_empty")]
    #[serde(rename = "success_rates", alias = "odds")]
    pub success_rates: SuccessRates,
    /// The available capabilities: `prompt`, `timeout`, `model`, `resume`, `fresh`, `repair`, `steps`.
    #[serde(rename = "capabilities", alias = "can")]
    pub capabilities: Vec<String>,
    /// The state of the upstream's circuit breaker and retry budget, if known.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub upstream: Value,
}

fn is_empty(odds: &SuccessRates) -> bool {
    *odds == SuccessRates::empty()
}

/// The effective limits for a failure kind, and their sources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectiveRetryLimits {
    /// The number of retries per level.
    pub retries: u32,
    /// The time without progress until unchanged retries stop, in milliseconds, if it applies instead of their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_after_ms: Option<u64>,
    /// The source of the number of retries.
    pub retries_from: String,
    /// The first delay, in seconds.
    pub backoff_base: f64,
    /// The factor between consecutive delays.
    pub backoff_multiplier: f64,
    /// The maximum delay, in seconds.
    pub max_backoff: f64,
}

/// A wait started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitStarted {
    /// The session; none in the log of a single-session run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The end of the wait.
    pub until: Timestamp,
    /// The reason for the wait.
    pub reason: String,
    /// True if the server stated the time.
    #[serde(default)]
    #[serde(rename = "stated")]
    pub is_stated: bool,
    /// The source of the end of the wait; none in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RetryAfterSource>,
    /// The purpose of the wait.
    #[serde(default, skip_serializing_if = "WaitPurpose::is_retry")]
    #[serde(rename = "purpose", alias = "wait_for")]
    pub wait_purpose: WaitPurpose,
    /// The time at which retries end if there is no progress, if retries are bounded by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_at: Option<Timestamp>,
    /// The cost of rereading the conversation after the wait, if significant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadCost>,
}

/// A wait ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitEnded {
    /// The session; none in the log of a single-session run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The cause of the end.
    pub by: EarlyWaitEndCause,
}

/// The cause of a wait's early end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyWaitEndCause {
    /// The network became available.
    Network,
    /// A human requested an immediate retry.
    Person,
}

/// A session was parked: after too long without progress it is only probed now and then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionParked {
    /// The session; none in the log of a single-session run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The failure kind.
    pub kind: FailureKind,
    /// The reason, in one sentence.
    pub reason: String,
    /// The time of the last progress.
    pub since: Timestamp,
    /// The time at which it is escalated if probes keep failing; none if it is probed without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A session switched to another model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSwitched {
    /// The session; none in the log of a single-session run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The models and the reason of the switch.
    #[serde(flatten)]
    pub switch: ModelSwitch,
}

/// The kind of an escalation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationKind {
    /// A failure that is fatal, or whose strategies are exhausted.
    Hiccup,
    /// A repair that needs approval.
    RecoveryApprovalRequired,
    /// An action that exceeds the cost limit without approval.
    CostConfirmation,
    /// An agent stuck in a loop.
    Stuck,
}

impl From<EscalationTrigger> for EscalationKind {
    fn from(trigger: EscalationTrigger) -> Self {
        match trigger {
            EscalationTrigger::Hiccup => Self::Hiccup,
            EscalationTrigger::CostConfirmation => Self::CostConfirmation,
            EscalationTrigger::Stuck => Self::Stuck,
            EscalationTrigger::Recovery => Self::RecoveryApprovalRequired,
        }
    }
}

impl EscalationKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Hiccup,
        Self::RecoveryApprovalRequired,
        Self::CostConfirmation,
        Self::Stuck,
    ];

    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hiccup => "hiccup",
            Self::RecoveryApprovalRequired => "recovery_approval_required",
            Self::CostConfirmation => "cost_confirmation",
            Self::Stuck => "stuck",
        }
    }

    /// Returns the label in texts for humans.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hiccup => "blocked",
            Self::RecoveryApprovalRequired => "approval needed",
            Self::CostConfirmation => "cost confirmation",
            Self::Stuck => "stuck in a loop",
        }
    }

    /// Returns the trigger name of the checkpoint file.
    pub const fn trigger(self) -> &'static str {
        match self {
            Self::Hiccup => "HICCUP",
            Self::RecoveryApprovalRequired => "RECOVERY",
            Self::CostConfirmation => "COST",
            Self::Stuck => "STUCK",
        }
    }
}

/// An escalation was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EscalationOpened {
    /// The session; none in the log of a single-session run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the escalation.
    pub id: String,
    /// The kind of the escalation.
    #[serde(rename = "type")]
    pub escalation_kind: EscalationKind,
    /// The trigger, for instance `HICCUP`.
    pub trigger: String,
    /// The failure kind.
    pub kind: FailureKind,
    /// The reason why a human is needed.
    #[serde(rename = "reason_code", alias = "why")]
    pub reason_code: EscalationReason,
    /// The reason, in one sentence.
    pub reason: String,
    /// The party whose answer is awaited: `human`.
    pub awaiting: String,
    /// The proposed action, if there is one.
    #[serde(default)]
    pub proposed: Option<ProposedAction>,
    /// The expected extra cost of the proposed action.
    #[serde(default)]
    pub cost: Option<CostEstimate>,
    /// The proposed repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// The reached budget, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetReached>,
    /// The details shown to users.
    #[serde(flatten)]
    pub details: EscalationDetails,
}

impl EscalationOpened {
    /// True if the run continues while the escalation is open.
    pub fn is_non_blocking(&self) -> bool {
        self.reason_code == EscalationReason::Trust
    }

    /// True if it is about changes to the project's files since the run started.
    pub fn is_about_settings(&self) -> bool {
        self.reason_code == EscalationReason::Trust && self.details.accepted_settings.is_some()
    }

    /// True if it is about a reached budget.
    pub fn is_about_budget(&self) -> bool {
        self.escalation_kind == EscalationKind::CostConfirmation
            && self.reason_code == EscalationReason::MaxCost
    }
}

/// The resolver name of an escalation whose subject no longer exists.
const WITHDRAWN: &str = "withdrawn";

/// An escalation was resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EscalationResolved {
    /// The session; none in the log of a single-session run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the escalation, if there was one.
    #[serde(default)]
    pub id: Option<String>,
    /// The resolver: `human`, `deadline` if the default answer applied, `unstuck` if a repair helped, or `withdrawn` if
    /// the subject no longer exists.
    pub by: String,
    /// The method: an answer (`approve`, `reject`, `manual`, `retry`, `escalate`, `skip`, `abort`), or `repair`.
    pub method: String,
    /// The user's note.
    #[serde(default)]
    pub note: String,
    /// The name of the user, if known.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "who")]
    pub user: Option<String>,
    /// The changes that take effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ConcreteAttemptChange>,
}

impl EscalationResolved {
    /// Creates the resolution by a repair that helped.
    pub fn by_repair(session: Option<SessionId>, repair: &str) -> Self {
        Self {
            id: Some(repair.to_owned()),
            by: "unstuck".into(),
            method: "repair".into(),
            ..Self::by_hand(session)
        }
    }

    /// Creates the resolution of an escalation whose subject no longer exists.
    pub fn new_withdrawal(question: &EscalationOpened) -> Self {
        Self {
            id: Some(question.id.clone()),
            by: WITHDRAWN.into(),
            method: WITHDRAWN.into(),
            ..Self::by_hand(question.session.clone())
        }
    }

    /// True if a human resolved it, or the default answer applied.
    pub fn is_by_human(&self) -> bool {
        self.by != "unstuck"
    }

    /// Returns the answer; none if nobody answered.
    pub fn answer(&self) -> Option<EscalationAnswer> {
        EscalationAnswer::from_name(&self.method).filter(|_| self.is_by_human())
    }

    /// Describes the answer and who gave it.
    pub fn summary(&self) -> String {
        let how = self.answer().map_or("closed", EscalationAnswer::past_tense);
        match (&self.user, self.by.as_str()) {
            (Some(user), _) => format!("{how} by {user}"),
            (None, "deadline") => format!("{how}: deadline passed without an answer"),
            (None, WITHDRAWN) => "withdrawn: no longer applicable".to_owned(),
            (None, _) => format!("{how} by a human"),
        }
    }

    /// Creates the resolution by a manual fix.
    pub fn by_hand(session: Option<SessionId>) -> Self {
        Self {
            session,
            id: None,
            by: "human".into(),
            method: EscalationAnswer::Resolve.method().into(),
            note: String::new(),
            user: None,
            changes: Vec::new(),
        }
    }

    /// Creates the resolution by an answer.
    pub fn answer_to(question: &EscalationOpened, answer: EscalationAnswer) -> Self {
        Self {
            id: Some(question.id.clone()),
            method: answer.method().into(),
            changes: question.details.changes(answer),
            ..Self::by_hand(question.session.clone())
        }
    }
}

/// A changed configuration was applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigReloaded {
    /// The path of the file.
    pub path: String,
    /// The changes, as text.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The new pipeline settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Box<RecordedPipelineSettings>>,
}

/// A changed configuration was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigRejected {
    /// The path of the file.
    pub path: String,
    /// The error.
    pub error: String,
}
