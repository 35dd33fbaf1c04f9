//! A question to a person: all that is needed to answer it in one look, and the answer.

use serde::{Deserialize, Serialize};
use unstuck_core::decision::ConcreteChange;
use unstuck_core::event::RepairConditions;
use unstuck_core::project_settings::SettingChange;
use unstuck_core::repair::needs_network;
use unstuck_core::{Kind, Timestamp, escalation};
use unstuck_store::EscalationRow;
use utoipa::ToSchema;

use super::attempt::Resolution;
use super::cost_estimate::CostEstimateResponse;
use super::money::round_usd;
use super::openapi_schemas;
use super::project::project_id;
use super::reread_cost::RereadCostResponse;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EscalationResponse {
    /// Its id.
    pub id: String,
    /// What kind of question it is.
    #[serde(rename = "type")]
    #[schema(schema_with = openapi_schemas::escalation_kind)]
    pub escalation_kind: String,
    /// What made unstuck ask, `HICCUP` for instance.
    pub trigger: String,
    /// The run that asks.
    pub run: String,
    /// The session that it is about, where it is about one.
    pub session: Option<String>,
    /// The root folder of its project.
    pub project: String,
    /// The id of its project.
    pub project_id: String,
    /// The role that it is about, where it is about one.
    pub role: Option<String>,
    /// The kind of failure that it is about.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: Kind,
    /// What was being done.
    #[serde(rename = "doing")]
    pub activity: String,
    /// The line of the failure that tells most.
    pub evidence: String,
    /// Why a person is needed, in one sentence.
    pub reason: String,
    /// What was tried before, and why it did not help.
    #[serde(rename = "tried")]
    pub prior_attempts: Vec<PriorAttempt>,
    /// What the project's files say differently than when the run began, where it is about that.
    pub settings: Vec<ChangedSetting>,
    /// The command that is proposed, where one is.
    pub command: Option<String>,
    /// Under which conditions the command would run, where it is about a repair.
    pub conditions: Option<ExecutionConditions>,
    /// What else is proposed, in words.
    pub proposed: Option<String>,
    /// What that is expected to cost more.
    pub cost: Option<CostEstimateResponse>,
    /// Whether there are file changes to look at before answering.
    pub can_preview: bool,
    /// Whether a preview of the command probably fails without network.
    pub preview_needs_network: bool,
    /// The answers that make sense, the likeliest first.
    pub answers: Vec<AnswerOption>,
    /// What it costs to wake the conversation, where an answer continues one.
    pub reread: Option<RereadCostResponse>,
    /// When it was asked.
    #[schema(value_type = String, format = DateTime)]
    pub created: Timestamp,
    /// What counts as answered when nobody answers in time.
    pub deadline: Option<AnswerDeadline>,
    /// The same failure has the same fingerprint.
    pub fingerprint: String,
    /// What an answer binds to: send it back with the answer, so that what was shown is what is answered.
    pub hash: String,
    /// What was answered; null while it waits.
    #[serde(rename = "answered")]
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
                .map(ChangedSetting::from)
                .collect(),
            proposed: proposed.and_then(|one| describe_proposal(&one.strategy, &one.changes)),
            cost: asked.cost.as_ref().map(|cost| {
                let models = proposed
                    .and_then(|one| one.changes.iter().find_map(ConcreteChange::model_switch));
                CostEstimateResponse::from_estimate(cost, models)
            }),
            reread: shown.reread.map(RereadCostResponse::from),
            can_preview: asked.repair.is_some(),
            preview_needs_network: shown.command.as_deref().is_some_and(needs_network),
            command: shown.command,
            conditions: shown.conditions.map(ExecutionConditions::from),
            created: question.at,
            deadline: shown.deadline.map(AnswerDeadline::from),
            fingerprint: shown.fingerprint,
            hash: shown.hash,
            id: asked.id,
            outcome: question.closure.map(|answered| EscalationOutcome {
                at: answered.at,
                resolution: answered.answer.map(Resolution::from),
            }),
        }
    }
}

/// Under which conditions a repair would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionConditions {
    /// How far it would be confined: `full`, `partial` or `none`.
    pub sandbox: String,
    /// What is missing for a complete sandbox.
    pub missing: Vec<String>,
    /// Whether it would reach the network.
    pub network: bool,
    /// The names of the environment variables that it would see.
    pub variables: Vec<String>,
    /// What it is known to change where git would obey it.
    pub effects: Vec<String>,
}

impl From<RepairConditions> for ExecutionConditions {
    fn from(of: RepairConditions) -> Self {
        Self {
            sandbox: of.sandbox,
            missing: of.missing,
            network: of.network,
            variables: of.variables,
            effects: of.effects,
        }
    }
}

/// The strategy that is to ask a person, which is being done.
const ASK_USER_STRATEGY: &str = "ask_user";

/// What is proposed, where it is no command.
fn describe_proposal(strategy: &str, changes: &[ConcreteChange]) -> Option<String> {
    let models = changes.iter().filter_map(ConcreteChange::model_switch);
    let models: Vec<_> = models
        .map(|(from, to)| format!("the model {to} in place of {from}"))
        .collect();
    if models.is_empty() {
        Some(strategy.replace('_', " ")).filter(|_| strategy != ASK_USER_STRATEGY)
    } else {
        Some(models.join(", "))
    }
}

/// Something that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PriorAttempt {
    /// What.
    pub what: String,
    /// Why it did not help.
    pub why: String,
}

impl From<escalation::PriorAttempt> for PriorAttempt {
    fn from(tried: escalation::PriorAttempt) -> Self {
        Self {
            what: tried.what,
            why: tried.failure_reason,
        }
    }
}

/// A setting of the project that was changed, and does not count until that is approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedSetting {
    /// Its path, such as `role.builder.command`.
    pub key: String,
    /// What it was, as JSON; null if there was nothing.
    pub before: Option<String>,
    /// What it is in the file now, as JSON; null if there is nothing.
    pub now: Option<String>,
}

impl From<SettingChange> for ChangedSetting {
    fn from(change: SettingChange) -> Self {
        Self {
            key: change.key,
            before: change.before,
            now: change.after,
        }
    }
}

/// An answer that makes sense.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerOption {
    /// The answer.
    pub answer: AnswerKind,
    /// What will happen.
    #[serde(rename = "does")]
    pub effect: String,
    /// What that is expected to cost more, in USD, where it is known.
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

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// Do what is proposed.
    Approve,
    /// Do not do it, and go on.
    Reject,
    /// It was seen to by hand: go on.
    Resolve,
    /// Again, with their words.
    Retry,
    /// Again, with a stronger model.
    Escalate,
    /// Leave this part out, and go on without it.
    Skip,
    /// End the run.
    Abort,
}

impl From<escalation::EscalationAnswer> for AnswerKind {
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

impl From<AnswerKind> for escalation::EscalationAnswer {
    fn from(answer: AnswerKind) -> Self {
        match answer {
            AnswerKind::Approve => Self::Approve,
            AnswerKind::Reject => Self::Reject,
            AnswerKind::Resolve => Self::Resolve,
            AnswerKind::Retry => Self::Retry,
            AnswerKind::Escalate => Self::SwitchModel,
            AnswerKind::Skip => Self::Skip,
            AnswerKind::Abort => Self::Abort,
        }
    }
}

/// What counts as answered when nobody answers in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerDeadline {
    /// When the time is over.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The answer that counts then.
    pub answer: AnswerKind,
}

impl From<escalation::EscalationDeadline> for AnswerDeadline {
    fn from(deadline: escalation::EscalationDeadline) -> Self {
        Self {
            at: deadline.at,
            answer: deadline.answer.into(),
        }
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EscalationOutcome {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What; null where it has come to nothing because the run went on or ended.
    #[serde(rename = "how")]
    pub resolution: Option<Resolution>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerRequest {
    /// The answer.
    pub answer: AnswerKind,
    /// Why, for those who read the history; for `retry` what is to be done otherwise.
    #[serde(default)]
    #[schema(max_length = 20000)]
    pub note: String,
    /// The hash of the question that was shown; where it is given, nothing else is answered.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub hash: Option<String>,
}

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerResult {
    /// The question, answered.
    pub escalation: EscalationResponse,
    /// What happens now, in one sentence.
    #[serde(rename = "doing")]
    pub next_action: String,
}

/// What a proposed command would change, tried out on a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepairPreview {
    /// The command.
    pub command: String,
    /// Whether it could use the network.
    pub network: bool,
    /// Its exit code; null where it did not come to its end.
    pub exit_code: Option<i32>,
    /// The end of what it wrote.
    pub output: String,
    /// The files that it would change.
    pub files: Vec<PreviewedFile>,
    /// Whether there are more of them than are told.
    pub more: bool,
    /// What cannot be told of it, in words.
    pub notes: Vec<String>,
}

/// A file that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedFile {
    /// Its path in the project.
    pub path: String,
    /// What happens to it: `added`, `changed` or `removed`.
    pub change: String,
    /// The difference, as a unified diff; empty where it cannot be shown.
    pub diff: String,
}
