//! Events about what was decided, proposed, asked and repaired, and about the configuration.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::EscalationAnswer;
use super::budget_reached::BudgetReached;
use super::escalation::EscalationDetails;
use super::id::SessionId;
use super::pipeline::PipelineStarted;
use crate::decision::{
    ConcreteChange, CostEstimate, Decision, EscalationReason, EscalationTrigger, ModelSwitch,
    ProposedAction, RereadCost, SuccessRates, WaitPurpose,
};
use crate::diagnosis::RetryAfterSource;
use crate::failure::Kind;
use crate::time::Timestamp;

/// It was decided what to do about a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionMade {
    /// The session that it is about; none in the log of a run that is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The number of the attempt that failed.
    pub number: u32,
    /// What was decided.
    pub decision: Decision,
    /// What it was made from, beside the events before it.
    #[serde(rename = "made_from")]
    pub inputs: DecisionInputs,
}

/// What a decision was made from, beside the events before it, so that it can be explained and made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionInputs {
    /// The version of the knowledge.
    pub knowledge: String,
    /// The fingerprint of the policy.
    pub policy_hash: String,
    /// The limits that held for this kind.
    pub limits: EffectiveLimits,
    /// What was learned about the strategies of this kind.
    #[serde(default, skip_serializing_if = "is_empty")]
    #[serde(rename = "odds")]
    pub success_rates: SuccessRates,
    /// What was possible here: `prompt`, `timeout`, `model`, `resume`, `fresh`, `repair`, `split_commands`.
    #[serde(rename = "can")]
    pub capabilities: Vec<String>,
    /// The state of the upstream's breaker and budget, where one is known.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub upstream: Value,
}

fn is_empty(odds: &SuccessRates) -> bool {
    *odds == SuccessRates::empty()
}

/// The limits that held for a kind of failure, and where they came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectiveLimits {
    /// How many retries each level had.
    pub retries: u32,
    /// How long it was repeated unchanged without progress, in milliseconds, where that counted instead of their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_after_ms: Option<u64>,
    /// Where that number came from.
    pub retries_from: String,
    /// The first wait, in seconds.
    pub backoff_base: f64,
    /// What each wait is multiplied by.
    pub backoff_multiplier: f64,
    /// The longest wait, in seconds.
    pub max_backoff: f64,
}

/// A wait began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitStarted {
    /// The session that it is about; none in the log of a run that is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// When it is over.
    pub until: Timestamp,
    /// What it is for.
    pub reason: String,
    /// Whether the server stated the moment.
    #[serde(default)]
    #[serde(rename = "stated")]
    pub is_stated: bool,
    /// Where the moment is known from; none in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RetryAfterSource>,
    /// What is waited for.
    #[serde(default, skip_serializing_if = "WaitPurpose::is_retry")]
    #[serde(rename = "wait_for")]
    pub wait_purpose: WaitPurpose,
    /// When it is given up if there is no progress until then, where time bounds the retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_at: Option<Timestamp>,
    /// What waking the conversation costs when it is over, where that is worth telling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadCost>,
}

/// A wait was over before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitEnded {
    /// The session that it is about; none in the log of a run that is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What ended it.
    pub by: WaitEndCause,
}

/// What ended a wait before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEndCause {
    /// The network was back.
    Network,
    /// A person who wanted it to be tried at once.
    Person,
}

/// There was no progress for so long that it is only probed now and then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionParked {
    /// The session that it is about; none in the log of a run that is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The kind of failure that it is about.
    pub kind: Kind,
    /// Why, in one sentence.
    pub reason: String,
    /// Since when there was no progress.
    pub since: Timestamp,
    /// When a person is asked if it does not work until then; none if it is probed without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A session went over to another model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSwitched {
    /// The session that it is about; none in the log of a run that is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// From which, to which, and why.
    #[serde(flatten)]
    pub switch: ModelSwitch,
}

/// What kind of question a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationKind {
    /// A failure that is fatal, or whose chain is used up.
    Hiccup,
    /// A repair that nobody has allowed yet.
    RecoveryApprovalRequired,
    /// Something would cost more than may be spent without asking.
    CostConfirmation,
    /// An agent goes in circles.
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
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Hiccup,
        Self::RecoveryApprovalRequired,
        Self::CostConfirmation,
        Self::Stuck,
    ];

    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hiccup => "hiccup",
            Self::RecoveryApprovalRequired => "recovery_approval_required",
            Self::CostConfirmation => "cost_confirmation",
            Self::Stuck => "stuck",
        }
    }

    /// What made unstuck ask, in the word of the checkpoint file.
    pub const fn trigger(self) -> &'static str {
        match self {
            Self::Hiccup => "HICCUP",
            Self::RecoveryApprovalRequired => "RECOVERY",
            Self::CostConfirmation => "COST",
            Self::Stuck => "STUCK",
        }
    }
}

/// A person was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EscalationOpened {
    /// The session that it is about; none in the log of a run that is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the question.
    pub id: String,
    /// What kind of question it is.
    #[serde(rename = "type")]
    pub escalation_kind: EscalationKind,
    /// What made unstuck ask, `HICCUP` for instance.
    pub trigger: String,
    /// The kind of failure that it is about.
    pub kind: Kind,
    /// Why a person is needed.
    #[serde(rename = "why")]
    pub reason_code: EscalationReason,
    /// Why, in one sentence.
    pub reason: String,
    /// Who is waited for: `human`.
    pub awaiting: String,
    /// What is done if they agree, where there is a proposal.
    #[serde(default)]
    pub proposed: Option<ProposedAction>,
    /// What that is expected to cost more.
    #[serde(default)]
    pub cost: Option<CostEstimate>,
    /// The repair that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// The budget that is used up, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetReached>,
    /// What else is shown of it.
    #[serde(flatten)]
    pub details: EscalationDetails,
}

impl EscalationOpened {
    /// Whether what it is about goes on meanwhile.
    pub fn is_non_blocking(&self) -> bool {
        self.reason_code == EscalationReason::Trust
    }

    /// Whether a person is asked because the project's files have changed since the run began.
    pub fn is_about_settings(&self) -> bool {
        self.reason_code == EscalationReason::Trust && self.details.accepted_settings.is_some()
    }

    /// Whether a person is asked because what a run may use is used up.
    pub fn is_about_budget(&self) -> bool {
        self.escalation_kind == EscalationKind::CostConfirmation
            && self.reason_code == EscalationReason::MaxCost
    }
}

/// How a question is settled whose subject is not there any more.
const WITHDRAWN: &str = "withdrawn";

/// A person's question was settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EscalationResolved {
    /// The session that it is about; none in the log of a run that is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the question, where there was one.
    #[serde(default)]
    pub id: Option<String>,
    /// By whom: `human`, `deadline` where nobody answered in time, `unstuck` where a repair has helped, or `withdrawn` where
    /// what was asked about is not there any more.
    pub by: String,
    /// How: an answer (`approve`, `reject`, `manual`, `retry`, `escalate`, `skip`, `abort`), or `repair`.
    pub method: String,
    /// What they said about it.
    #[serde(default)]
    pub note: String,
    /// Who it was, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// What is different from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ConcreteChange>,
}

impl EscalationResolved {
    /// A repair has helped: what had failed works.
    pub fn by_repair(session: Option<SessionId>, repair: &str) -> Self {
        Self {
            id: Some(repair.to_owned()),
            by: "unstuck".into(),
            method: "repair".into(),
            ..Self::by_hand(session)
        }
    }

    /// What was asked about is not there any more.
    pub fn withdrawal_of(question: &EscalationOpened) -> Self {
        Self {
            id: Some(question.id.clone()),
            by: WITHDRAWN.into(),
            method: WITHDRAWN.into(),
            ..Self::by_hand(question.session.clone())
        }
    }

    /// Whether a person has settled it, or what they want when they do not answer.
    pub fn is_by_person(&self) -> bool {
        self.by != "unstuck"
    }

    /// What a person has answered; none where nobody did.
    pub fn answer(&self) -> Option<EscalationAnswer> {
        EscalationAnswer::from_name(&self.method).filter(|_| self.is_by_person())
    }

    /// What was answered and by whom, in words.
    pub fn summary(&self) -> String {
        let how = self
            .answer()
            .map_or("settled", EscalationAnswer::past_tense);
        match (&self.who, self.by.as_str()) {
            (Some(who), _) => format!("{how} by {who}"),
            (None, "deadline") => format!("{how}, because nobody answered in time"),
            (None, WITHDRAWN) => {
                "withdrawn, because what it was about is not there any more".to_owned()
            }
            (None, _) => format!("{how} by a person"),
        }
    }

    /// A person has seen to it by hand.
    pub fn by_hand(session: Option<SessionId>) -> Self {
        Self {
            session,
            id: None,
            by: "human".into(),
            method: EscalationAnswer::Resolve.method().into(),
            note: String::new(),
            who: None,
            changes: Vec::new(),
        }
    }

    /// The answer to a question.
    pub fn answer_to(question: &EscalationOpened, answer: EscalationAnswer) -> Self {
        Self {
            id: Some(question.id.clone()),
            method: answer.method().into(),
            changes: question.details.changes(answer),
            ..Self::by_hand(question.session.clone())
        }
    }
}

/// A changed configuration was taken over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigReloaded {
    /// The file.
    pub path: String,
    /// What changed, in words.
    #[serde(default)]
    pub changes: Vec<String>,
    /// What a pipeline is from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Box<PipelineStarted>>,
}

/// A changed configuration was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigRejected {
    /// The file.
    pub path: String,
    /// What is wrong with it.
    pub error: String,
}
