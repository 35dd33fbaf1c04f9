//! An escalation with everything needed to answer it at a glance, and its answer.

use serde::{Deserialize, Serialize};
use unstuck_core::decision::ConcreteAttemptChange;
use unstuck_core::event::RepairConfinement;
use unstuck_core::project_settings_snapshot::ProjectSettingChange;
use unstuck_core::repair::needs_network;
use unstuck_core::{FailureKind, Timestamp, escalation};
use unstuck_store::EscalationRow;
use utoipa::ToSchema;

use super::attempt::EscalationResolution;
use super::extra_cost_estimate::ExtraCostEstimateResponse;
use super::money::round_usd;
use super::openapi_schemas;
use super::project::project_id;
use super::reread_cost::RereadCostResponse;

/// An escalation: a request for human input.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EscalationResponse {
    /// Id of the escalation.
    pub id: String,
    /// Kind of escalation.
    #[serde(rename = "type")]
    #[schema(schema_with = openapi_schemas::escalation_kind)]
    pub escalation_kind: String,
    /// Trigger, for example `HICCUP`.
    pub trigger: String,
    /// Id of the run.
    pub run: String,
    /// Session it belongs to, if any.
    pub session: Option<String>,
    /// Root directory of the project.
    pub project: String,
    /// Id of the project.
    pub project_id: String,
    /// Role it belongs to, if any.
    pub role: Option<String>,
    /// Kind of the failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: FailureKind,
    /// Activity that was running.
    pub activity: String,
    /// Most informative line of the failure.
    pub evidence: String,
    /// Reason why human input is needed, in one sentence.
    pub reason: String,
    /// Strategies that were tried before, and why they did not help.
    pub prior_attempts: Vec<PriorAttempt>,
    /// Project settings that changed since the run began, if it is about them.
    pub settings: Vec<UnapprovedSettingChange>,
    /// Proposed command, if any.
    pub command: Option<String>,
    /// Conditions under which a proposed repair would run.
    pub conditions: Option<RepairConfinementResponse>,
    /// Other proposed change, as text.
    pub proposed: Option<String>,
    /// Expected extra cost of the proposal.
    pub cost: Option<ExtraCostEstimateResponse>,
    /// True if file changes can be previewed before answering.
    pub can_preview: bool,
    /// True if a preview of the command probably fails without network access.
    pub preview_needs_network: bool,
    /// Available answers, the most likely first.
    pub answers: Vec<AnswerOption>,
    /// Cost of rereading the conversation, if an answer continues one.
    pub reread: Option<RereadCostResponse>,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created: Timestamp,
    /// Default answer and when it applies.
    pub deadline: Option<AnswerDeadline>,
    /// Fingerprint that identifies the same failure.
    pub fingerprint: String,
    /// Hash that binds an answer to what was shown; send it back with the answer.
    pub hash: String,
    /// Answer; null while it is pending.
    pub outcome: Option<EscalationOutcome>,
}

impl From<EscalationRow> for EscalationResponse {
    fn from(question: EscalationRow) -> Self {
        let answers = escalation::offered_options(&question.request).into_iter();
        let asked = question.request;
        let proposed = asked.proposed.as_ref();
        let shown = asked.details;
        Self {
            answers: answers.map(AnswerOption::from).collect(),
            escalation_kind: asked.escalation_kind.name().to_owned(),
            trigger: asked.trigger,
            run: question.run.as_str().to_owned(),
            session: asked.session.map(|session| session.as_str().to_owned()),
            project_id: project_id(&question.project),
            project: question.project,
            role: shown.role,
            kind: asked.kind,
            activity: shown.activity,
            evidence: shown.evidence,
            reason: asked.reason,
            prior_attempts: shown
                .prior_attempts
                .into_iter()
                .map(PriorAttempt::from)
                .collect(),
            settings: shown
                .settings
                .into_iter()
                .map(UnapprovedSettingChange::from)
                .collect(),
            proposed: proposed.and_then(|one| describe_proposal(&one.strategy, &one.changes)),
            cost: asked.cost.as_ref().map(|cost| {
                let models = proposed.and_then(|one| {
                    one.changes
                        .iter()
                        .find_map(ConcreteAttemptChange::model_switch)
                });
                ExtraCostEstimateResponse::from_estimate(cost, models)
            }),
            reread: shown.reread.map(RereadCostResponse::from),
            can_preview: asked.repair.is_some(),
            preview_needs_network: shown.command.as_deref().is_some_and(needs_network),
            command: shown.command,
            conditions: shown.conditions.map(RepairConfinementResponse::from),
            created: question.at,
            deadline: shown.deadline.map(AnswerDeadline::from),
            fingerprint: shown.fingerprint,
            hash: shown.hash,
            id: asked.id,
            outcome: question.closure.map(|answered| EscalationOutcome {
                at: answered.at,
                resolution: answered.answer.map(EscalationResolution::from),
            }),
        }
    }
}

/// Conditions under which a repair would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepairConfinementResponse {
    /// Sandbox level: `full`, `partial` or `none`.
    pub sandbox: String,
    /// Features missing for a full sandbox.
    pub missing: Vec<String>,
    /// True if it would have network access.
    pub network: bool,
    /// Names of the environment variables that it would see.
    pub variables: Vec<String>,
    /// Known effects on files that git obeys.
    pub effects: Vec<String>,
}

impl From<RepairConfinement> for RepairConfinementResponse {
    fn from(of: RepairConfinement) -> Self {
        Self {
            sandbox: of.sandbox,
            missing: of.missing,
            network: of.network,
            variables: of.variables,
            effects: of.effects,
        }
    }
}

/// The strategy of asking a human, which the escalation itself already is.
const ASK_USER_STRATEGY: &str = "ask_user";

/// Describes a proposal that is not a command.
fn describe_proposal(strategy: &str, changes: &[ConcreteAttemptChange]) -> Option<String> {
    let models = changes
        .iter()
        .filter_map(ConcreteAttemptChange::model_switch);
    let models: Vec<_> = models
        .map(|(from, to)| format!("switch model from {from} to {to}"))
        .collect();
    if models.is_empty() {
        Some(strategy.replace('_', " ")).filter(|_| strategy != ASK_USER_STRATEGY)
    } else {
        Some(models.join(", "))
    }
}

/// Something that was tried before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriorAttempt {
    /// Strategy or action that was tried.
    pub action: String,
    /// Reason why it did not help.
    pub failure_reason: String,
}

impl From<escalation::EscalationPriorAttempt> for PriorAttempt {
    fn from(tried: escalation::EscalationPriorAttempt) -> Self {
        Self {
            action: tried.what,
            failure_reason: tried.failure_reason,
        }
    }
}

/// A changed project setting that is ignored until it is approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnapprovedSettingChange {
    /// Path, such as `role.builder.command`.
    pub key: String,
    /// Previous value as JSON; null if there was none.
    pub before: Option<String>,
    /// Current value in the file as JSON; null if there is none.
    pub after: Option<String>,
}

impl From<ProjectSettingChange> for UnapprovedSettingChange {
    fn from(change: ProjectSettingChange) -> Self {
        Self {
            key: change.key,
            before: change.before,
            after: change.after,
        }
    }
}

/// An available answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerOption {
    /// The answer.
    pub answer: EscalationAnswerChoice,
    /// Effect of the answer.
    pub effect: String,
    /// Expected extra cost in USD, if known.
    pub cost_usd: Option<f64>,
}

impl From<escalation::AnswerOption> for AnswerOption {
    fn from(choice: escalation::AnswerOption) -> Self {
        Self {
            answer: choice.answer.into(),
            effect: choice.effect,
            cost_usd: choice.cost.map(round_usd),
        }
    }
}

/// An answer to an escalation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EscalationAnswerChoice {
    /// Approve the proposed action.
    Approve,
    /// Reject the proposed action and continue.
    Reject,
    /// Continue after a manual fix.
    Resolve,
    /// Retry with additional instructions.
    Retry,
    /// Retry with a stronger model.
    Escalate,
    /// Skip this step and continue.
    Skip,
    /// Abort the run.
    Abort,
}

impl From<escalation::EscalationAnswer> for EscalationAnswerChoice {
    fn from(answer: escalation::EscalationAnswer) -> Self {
        match answer {
            escalation::EscalationAnswer::Approve => Self::Approve,
            escalation::EscalationAnswer::Reject => Self::Reject,
            escalation::EscalationAnswer::Resolve => Self::Resolve,
            escalation::EscalationAnswer::Retry => Self::Retry,
            escalation::EscalationAnswer::SwitchModel => Self::Escalate,
            escalation::EscalationAnswer::Skip => Self::Skip,
            escalation::EscalationAnswer::Abort => Self::Abort,
        }
    }
}

impl From<EscalationAnswerChoice> for escalation::EscalationAnswer {
    fn from(answer: EscalationAnswerChoice) -> Self {
        match answer {
            EscalationAnswerChoice::Approve => Self::Approve,
            EscalationAnswerChoice::Reject => Self::Reject,
            EscalationAnswerChoice::Resolve => Self::Resolve,
            EscalationAnswerChoice::Retry => Self::Retry,
            EscalationAnswerChoice::Escalate => Self::SwitchModel,
            EscalationAnswerChoice::Skip => Self::Skip,
            EscalationAnswerChoice::Abort => Self::Abort,
        }
    }
}

/// The default answer and when it applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerDeadline {
    /// Deadline.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Answer that applies after the deadline.
    pub answer: EscalationAnswerChoice,
}

impl From<escalation::EscalationDeadline> for AnswerDeadline {
    fn from(deadline: escalation::EscalationDeadline) -> Self {
        Self {
            at: deadline.at,
            answer: deadline.answer.into(),
        }
    }
}

/// The outcome of an escalation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EscalationOutcome {
    /// Time of the outcome.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Resolution; null if the escalation became obsolete because the run continued or ended.
    pub resolution: Option<EscalationResolution>,
}

/// A human's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerRequest {
    /// The answer.
    pub answer: EscalationAnswerChoice,
    /// Reason, kept in the history; for `retry` the additional instructions.
    #[serde(default)]
    #[schema(max_length = 20000)]
    pub note: String,
    /// Hash of the escalation that was shown; if given, it must match.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub hash: Option<String>,
}

/// The result of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EscalationAnswerResponse {
    /// The answered escalation.
    pub escalation: EscalationResponse,
    /// Next action, in one sentence.
    pub next_action: String,
}

/// A preview of a proposed command, run on a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepairPreview {
    /// Command.
    pub command: String,
    /// True if it had network access.
    pub network: bool,
    /// Exit code; null if it did not finish.
    pub exit_code: Option<i32>,
    /// End of its output.
    pub output: String,
    /// Files that it would change.
    pub files: Vec<PreviewedFile>,
    /// True if more files would change than are listed.
    pub more: bool,
    /// Limits of the preview, each in one sentence.
    pub notes: Vec<String>,
}

/// A file that would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedFile {
    /// Path in the project.
    pub path: String,
    /// Type of change: `added`, `changed` or `removed`.
    pub change: String,
    /// Unified diff; empty if it cannot be shown.
    pub diff: String,
}
