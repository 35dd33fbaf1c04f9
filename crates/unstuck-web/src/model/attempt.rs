//! An attempt of a session, its outcome and the decision that followed.

use serde::Serialize;
use unstuck_core::decision::{CostEstimate, TokenUsage};
use unstuck_core::event::{DecisionMade, EscalationResolved};
use unstuck_core::views::{AttemptView, RepairView};
use unstuck_core::{FailureKind, RecoveryLevel, Timestamp, diagnosis};
use utoipa::ToSchema;

use super::api_call::FailedOrRecoveredCallResponse;
use super::model_switch::ModelSwitchEntry;
use super::money::round_usd;
use super::openapi_schemas;
use super::reread_cost::RereadCostResponse;

/// An attempt of a session.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptResponse {
    /// Id: the run's id and the index among all attempts of the run.
    #[schema(example = "k3v9x0m2qa/2")]
    pub id: String,
    /// Index among all attempts of the run, from 1.
    pub index: u32,
    /// Id of the session.
    pub session: String,
    /// Role, in a pipeline.
    pub role: Option<String>,
    /// Iteration of the loop, in a pipeline.
    pub iteration: Option<u32>,
    /// Instance of the role, if several run in parallel in a pipeline.
    pub instance: Option<u32>,
    /// Number in the session, from 1.
    pub number: u32,
    /// Outcome: `running`, `succeeded`, `failed` or `interrupted`.
    pub outcome: String,
    /// Number of times it was interrupted from outside and re-run.
    pub interruptions: u32,
    /// Start time.
    #[schema(value_type = String, format = DateTime)]
    pub started: Timestamp,
    /// End time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended: Option<Timestamp>,
    /// Duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// Command line.
    pub command: Vec<String>,
    /// Model, if known.
    pub model: Option<String>,
    /// Failure that this attempt recovers from.
    pub recovers_from: Option<RetryCauseResponse>,
    /// Changes made for this attempt, each in one sentence.
    pub changes: Vec<String>,
    /// Exit code.
    pub exit_code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Limit that was reached: `timeout` or `idle_timeout`.
    pub limit: Option<String>,
    /// Cost, tokens and turns.
    pub usage: AttemptUsage,
    /// Diagnosis of the failure.
    pub diagnosis: Option<DiagnosisResponse>,
    /// Errors found by the output checks.
    pub validation_errors: Vec<String>,
    /// End of its output.
    pub excerpt: Option<OutputExcerpt>,
    /// Decision about it.
    pub decision: Option<Decision>,
    /// LLM API calls that needed recovery or failed.
    pub calls: Vec<FailedOrRecoveredCallResponse>,
    /// Model switches: those of the gateway during the attempt and the one that followed.
    pub model_changes: Vec<ModelSwitchEntry>,
    /// Wait that followed.
    pub wait: Option<NextAttemptWait>,
    /// Id of the escalation that followed.
    pub escalation: Option<String>,
    /// Resolution of that escalation.
    pub resolution: Option<EscalationResolution>,
    /// Repairs that were proposed because of it.
    pub repairs: Vec<RepairResponse>,
}

impl From<AttemptView> for AttemptResponse {
    fn from(story: AttemptView) -> Self {
        let part = story.part;
        let changes = story
            .gateway_model_switches
            .into_iter()
            .chain(story.model_switch);
        Self {
            id: story.id,
            index: story.index,
            session: story.session.as_str().to_owned(),
            iteration: part.as_ref().map(|part| part.iteration),
            instance: part.as_ref().map(|part| part.instance),
            role: part.map(|part| part.role),
            number: story.number,
            outcome: story.outcome.name().to_owned(),
            interruptions: story.interrupted_count,
            started: story.started,
            ended: story.ended,
            duration_ms: story.duration_ms,
            command: story.command,
            model: story.model,
            recovers_from: story.cause.map(|answering| RetryCauseResponse {
                kind: answering.kind,
                level: answering.level,
                strategy: answering.strategy,
            }),
            changes: story.changes,
            exit_code: story.exit_code,
            signal: story.signal,
            limit: story.limit,
            usage: AttemptUsage {
                cost_usd: story.usage.cost_usd.map(round_usd),
                tokens: story.usage.tokens.map(TokenCounts::from),
                turns: story.usage.turns,
            },
            diagnosis: story.diagnosis.map(DiagnosisResponse::from),
            validation_errors: story.validation_errors,
            excerpt: story.excerpt.map(|excerpt| OutputExcerpt {
                stdout: excerpt.stdout,
                stderr: excerpt.stderr,
            }),
            decision: story.decision.map(Decision::from),
            calls: story
                .calls
                .into_iter()
                .map(FailedOrRecoveredCallResponse::from)
                .collect(),
            model_changes: changes.map(ModelSwitchEntry::from).collect(),
            wait: story.wait.map(|wait| NextAttemptWait {
                until: wait.until,
                reason: wait.reason,
                stated: wait.is_stated,
                reread: wait.reread.map(RereadCostResponse::from),
            }),
            escalation: story.escalation.map(|asked| asked.id),
            resolution: story.resolution.map(EscalationResolution::from),
            repairs: story
                .repairs
                .into_iter()
                .map(RepairResponse::from)
                .collect(),
        }
    }
}

/// The failure that an attempt recovers from.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryCauseResponse {
    /// Kind of the previous failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: FailureKind,
    /// Recovery level of the response.
    #[schema(schema_with = openapi_schemas::level)]
    pub level: RecoveryLevel,
    /// Strategy, if one of the chain was used.
    pub strategy: Option<String>,
}

/// Known usage of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptUsage {
    /// Cost in USD.
    pub cost_usd: Option<f64>,
    /// Token counts.
    pub tokens: Option<TokenCounts>,
    /// Number of agent turns.
    pub turns: Option<u32>,
}

/// Token counts by type.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCounts {
    /// Input tokens that were not cached.
    pub input: u64,
    /// Input tokens read from the provider's cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

impl From<TokenUsage> for TokenCounts {
    fn from(tokens: TokenUsage) -> Self {
        Self {
            input: tokens.input,
            cached: tokens.cached,
            output: tokens.output,
        }
    }
}

/// The diagnosis of a failure.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosisResponse {
    /// Kind of failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: FailureKind,
    /// Layer where it was observed: `api`, `tool`, `agent` or `infra`.
    pub layer: String,
    /// Level at which recovery starts.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub level: Option<RecoveryLevel>,
    /// Confidence from 0 to 1.
    pub confidence: f32,
    /// Delay stated by the failure, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Rule that matched.
    pub rule: String,
    /// Line that the rule matched.
    pub line: String,
    /// Fingerprint that identifies the same failure.
    pub fingerprint: String,
    /// One-sentence summary.
    pub message: String,
    /// Suggested fix.
    pub hint: String,
    /// True if a response was truncated at its length limit.
    pub truncated: bool,
}

impl From<diagnosis::Diagnosis> for DiagnosisResponse {
    fn from(found: diagnosis::Diagnosis) -> Self {
        let millis =
            |wait: std::time::Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self {
            kind: found.kind,
            layer: found.layer.name().to_owned(),
            level: found.level,
            confidence: found.confidence,
            retry_after_ms: found.retry_after.map(millis),
            rule: found.evidence.rule,
            line: found.evidence.line,
            fingerprint: found.fingerprint,
            message: found.message,
            hint: found.hint,
            truncated: found.truncated,
        }
    }
}

/// A recovery decision and its reason.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Level; null if no recovery applies.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub level: Option<RecoveryLevel>,
    /// Strategy of the kind's chain, if one was chosen.
    pub strategy: Option<String>,
    /// Reason, in one sentence.
    pub reason: String,
    /// Number of this retry at its level, from 1; 0 if there is no retry.
    pub attempt: u32,
    /// Number of retries allowed at this level.
    pub max_attempts: u32,
    /// Delay before the retry, in milliseconds; null if no retry follows.
    pub delay_ms: Option<u64>,
    /// True if the delay is a reset that the server stated.
    pub stated: bool,
    /// Strategies that were skipped, with reasons.
    pub skipped: Vec<SkippedStrategy>,
    /// Expected extra cost in USD.
    pub cost_usd: Option<f64>,
    /// Time of the decision.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Version of the knowledge base that was used.
    pub knowledge: String,
    /// Fingerprint of the policy that was used.
    pub policy_hash: String,
}

/// A strategy that was skipped.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedStrategy {
    /// The strategy, or `same` for the unchanged retry.
    pub strategy: String,
    /// Reason.
    pub reason: String,
}

impl From<DecisionMade> for Decision {
    fn from(made: DecisionMade) -> Self {
        let decision = made.decision;
        let delay = decision.delay();
        let passed_over = decision.skipped.into_iter().map(|one| SkippedStrategy {
            strategy: one.strategy.into_owned(),
            reason: one.why.into_owned(),
        });
        Self {
            level: decision.level,
            strategy: decision.strategy,
            reason: decision.reason,
            attempt: decision.attempt,
            max_attempts: decision.max_attempts,
            delay_ms: delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            stated: decision.is_stated_reset,
            skipped: passed_over.collect(),
            cost_usd: decision
                .cost
                .as_ref()
                .and_then(CostEstimate::usd)
                .map(round_usd),
            at: decision.decided_at,
            knowledge: made.inputs.knowledge,
            policy_hash: made.inputs.policy_hash,
        }
    }
}

/// A wait before the next attempt.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextAttemptWait {
    /// End of the wait.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// Reason for the wait.
    pub reason: String,
    /// True if the server stated the time.
    pub stated: bool,
    /// Cost of rereading the conversation after the wait, if it is significant.
    pub reread: Option<RereadCostResponse>,
}

/// The end of an attempt's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputExcerpt {
    /// End of the standard output.
    pub stdout: String,
    /// End of the standard error.
    pub stderr: String,
}

/// The prompt and output of an attempt, as far as they are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptTexts {
    /// Prompt, if known.
    pub prompt: Option<String>,
    /// Standard output, or the end of it.
    pub stdout: String,
    /// Standard error, or the end of it.
    pub stderr: String,
    /// True if the beginning was truncated.
    pub truncated: bool,
}

/// The resolution of an escalation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EscalationResolution {
    /// Resolved by `human`, `deadline` or `unstuck`.
    pub by: String,
    /// Method: an answer, or `repair`.
    pub method: String,
    /// Name of the user, if known.
    pub user: Option<String>,
    /// Note of the user.
    pub note: String,
    /// One-sentence summary.
    pub summary: String,
}

impl From<EscalationResolved> for EscalationResolution {
    fn from(resolved: EscalationResolved) -> Self {
        Self {
            summary: resolved.summary(),
            by: resolved.by,
            method: resolved.method,
            user: resolved.user,
            note: resolved.note,
        }
    }
}

/// A proposed repair and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepairResponse {
    /// Id within the run.
    pub id: String,
    /// Command.
    pub command: String,
    /// Directory to run it in, relative to the project root.
    pub working_dir: Option<String>,
    /// Root cause, as stated by the proposer.
    pub root_cause: String,
    /// Expected outcome, as stated by the proposer.
    pub expected_outcome: String,
    /// Reason for the policy verdict, in one sentence.
    pub reason: String,
    /// True if it was approved.
    pub approved: bool,
    /// Exit code, if it was run.
    pub exit_code: Option<i32>,
    /// Duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// Sandbox level.
    pub sandbox: Option<String>,
    /// Side effects and limits: missing sandbox features, removed or restored files, changes that were dropped.
    pub side_effects: Vec<String>,
    /// End of its output.
    pub output: String,
    /// Reason for the failure, if it failed.
    pub failed: Option<String>,
    /// True if the failed command works since the repair.
    pub succeeded: bool,
}

impl From<RepairView> for RepairResponse {
    fn from(story: RepairView) -> Self {
        Self {
            id: story.proposed.id,
            command: story.proposed.command,
            working_dir: story.proposed.working_dir,
            root_cause: story.proposed.root_cause,
            expected_outcome: story.proposed.expected_outcome,
            reason: story.proposed.reason,
            approved: story.approved_by.is_some(),
            exit_code: story.exit_code,
            duration_ms: story.duration_ms,
            sandbox: story.sandbox,
            side_effects: story.side_effects.lines(),
            output: story.output,
            failed: story.failure_reason,
            succeeded: story.has_helped,
        }
    }
}
