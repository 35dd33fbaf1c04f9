//! An attempt: one try of a session, what came of it, and what was decided.

use serde::Serialize;
use unstuck_core::decision::{CostEstimate, TokenUsage};
use unstuck_core::event::{DecisionMade, EscalationResolved};
use unstuck_core::views::{AttemptView, RepairView};
use unstuck_core::{Kind, Level, Timestamp, diagnosis};
use utoipa::ToSchema;

use super::api_call::ApiCall;
use super::model_switch::ModelSwitchResponse;
use super::money::round_usd;
use super::openapi_schemas;
use super::reread_cost::RereadCostResponse;

/// One try of a session.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptResponse {
    /// Its id: that of the run, and its place among all attempts of the run.
    #[schema(example = "k3v9x0m2qa/2")]
    pub id: String,
    /// Its place among all attempts of the run, from 1.
    pub index: u32,
    /// Its session.
    pub session: String,
    /// Which role it plays, in a pipeline.
    pub role: Option<String>,
    /// The iteration of the loop, in a pipeline.
    pub iteration: Option<u32>,
    /// Which of several that play the same role at the same time, in a pipeline.
    pub instance: Option<u32>,
    /// Its number in the session, from 1.
    pub number: u32,
    /// What came of it: `running`, `succeeded`, `failed` or `interrupted`.
    pub outcome: String,
    /// How often it was cut off from outside and made again.
    #[serde(rename = "cutOff")]
    pub interruptions: u32,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended: Option<Timestamp>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The command line.
    pub command: Vec<String>,
    /// The model, as far as is known.
    pub model: Option<String>,
    /// What it was an answer to.
    #[serde(rename = "answering")]
    pub recovers_from: Option<RecoveredFailure>,
    /// What was changed about it, in words.
    pub changes: Vec<String>,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit that was reached: `timeout` or `idle_timeout`.
    pub limit: Option<String>,
    /// What it used.
    #[serde(rename = "used")]
    pub usage: AttemptUsage,
    /// What the failure was found to be.
    pub diagnosis: Option<DiagnosisResponse>,
    /// What the checks of its output found wrong.
    pub validation_errors: Vec<String>,
    /// The last that it wrote.
    pub excerpt: Option<OutputExcerpt>,
    /// What was decided about it.
    pub decision: Option<Decision>,
    /// The calls of LLM APIs that did not simply work.
    pub calls: Vec<ApiCall>,
    /// The changes of the model: those that the gateway made meanwhile, and the one that followed.
    pub model_changes: Vec<ModelSwitchResponse>,
    /// The wait that followed.
    pub wait: Option<AttemptWait>,
    /// The id of the question that followed.
    pub escalation: Option<String>,
    /// How that was settled.
    #[serde(rename = "resolved")]
    pub resolution: Option<Resolution>,
    /// The repairs that were proposed because of it.
    pub repairs: Vec<Repair>,
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
            recovers_from: story.cause.map(|answering| RecoveredFailure {
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
                tokens: story.usage.tokens.map(TokenCount::from),
                turns: story.usage.turns,
            },
            diagnosis: story.diagnosis.map(DiagnosisResponse::from),
            validation_errors: story.validation_errors,
            excerpt: story.excerpt.map(|excerpt| OutputExcerpt {
                stdout: excerpt.stdout,
                stderr: excerpt.stderr,
            }),
            decision: story.decision.map(Decision::from),
            calls: story.calls.into_iter().map(ApiCall::from).collect(),
            model_changes: changes.map(ModelSwitchResponse::from).collect(),
            wait: story.wait.map(|wait| AttemptWait {
                until: wait.until,
                reason: wait.reason,
                stated: wait.is_stated,
                reread: wait.reread.map(RereadCostResponse::from),
            }),
            escalation: story.escalation.map(|asked| asked.id),
            resolution: story.resolution.map(Resolution::from),
            repairs: story.repairs.into_iter().map(Repair::from).collect(),
        }
    }
}

/// What an attempt is an answer to.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveredFailure {
    /// The kind of the failure before.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: Kind,
    /// The level of the answer.
    #[schema(schema_with = openapi_schemas::level)]
    pub level: Level,
    /// The strategy, where one of the chain was used.
    pub strategy: Option<String>,
}

/// What an attempt used, as far as is known.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptUsage {
    /// What it cost, in USD.
    pub cost_usd: Option<f64>,
    /// How many tokens.
    pub tokens: Option<TokenCount>,
    /// How many turns the agent took.
    pub turns: Option<u32>,
}

/// How many tokens were used.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCount {
    /// Sent anew.
    pub input: u64,
    /// Sent again and kept by the provider.
    pub cached: u64,
    /// Written by the model.
    pub output: u64,
}

impl From<TokenUsage> for TokenCount {
    fn from(tokens: TokenUsage) -> Self {
        Self {
            input: tokens.input,
            cached: tokens.cached,
            output: tokens.output,
        }
    }
}

/// What a failure was found to be.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosisResponse {
    /// What went wrong, in one word.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: Kind,
    /// Where it was observed: `api_path`, `tool`, `agent` or `infra`.
    pub layer: String,
    /// The level at which recovery starts.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub level: Option<Level>,
    /// How sure this is, from 0 to 1.
    pub confidence: f32,
    /// How long to wait, where the failure states it, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The rule that decided.
    pub rule: String,
    /// The line that it matched.
    pub line: String,
    /// Recognises the same failure again.
    pub fingerprint: String,
    /// One sentence for a person.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// Whether an answer was cut off at its length limit.
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

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The level; null where nothing is ours to do.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub level: Option<Level>,
    /// The strategy of the kind's chain, where one was chosen.
    pub strategy: Option<String>,
    /// Why, in one sentence.
    pub reason: String,
    /// Which retry at this level this is, from 1; 0 where there is none.
    pub attempt: u32,
    /// How many retries this level has.
    #[serde(rename = "of")]
    pub max_attempts: u32,
    /// How long is waited first, in milliseconds; null where no retry follows.
    pub delay_ms: Option<u64>,
    /// Whether the wait is one for a reset that the server stated.
    pub stated: bool,
    /// What was passed over, and why.
    #[serde(rename = "passedOver")]
    pub skipped: Vec<SkippedStrategy>,
    /// What it is expected to cost more, in USD.
    pub cost_usd: Option<f64>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The version of the knowledge that it was made with.
    pub knowledge: String,
    /// The fingerprint of the policy that it was made by.
    pub policy_hash: String,
}

/// A way that was passed over.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedStrategy {
    /// The strategy, or `same` for the unchanged retry.
    pub strategy: String,
    /// Why.
    pub why: String,
}

impl From<DecisionMade> for Decision {
    fn from(made: DecisionMade) -> Self {
        let decision = made.decision;
        let delay = decision.delay();
        let passed_over = decision.skipped.into_iter().map(|one| SkippedStrategy {
            strategy: one.strategy.into_owned(),
            why: one.why.into_owned(),
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

/// A wait.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptWait {
    /// When it is over.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// What it is for.
    pub reason: String,
    /// Whether the server stated the moment.
    pub stated: bool,
    /// What waking the conversation costs when it is over, where that is worth telling.
    pub reread: Option<RereadCostResponse>,
}

/// The last that an attempt wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputExcerpt {
    /// The end of its standard output.
    pub stdout: String,
    /// The end of its standard error.
    pub stderr: String,
}

/// All that an attempt was given and wrote, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptTexts {
    /// The prompt that it was given, where it is known.
    pub prompt: Option<String>,
    /// Its standard output, or the end of it.
    pub stdout: String,
    /// Its standard error, or the end of it.
    pub stderr: String,
    /// Whether something was left out at the beginning.
    pub cut: bool,
}

/// How a question was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// By whom: `human`, `deadline` or `unstuck`.
    pub by: String,
    /// How: an answer, or `repair`.
    pub method: String,
    /// Who it was, where that is known.
    pub who: Option<String>,
    /// What they said about it.
    pub note: String,
    /// All that in words.
    #[serde(rename = "said")]
    pub summary: String,
}

impl From<EscalationResolved> for Resolution {
    fn from(resolved: EscalationResolved) -> Self {
        Self {
            summary: resolved.summary(),
            by: resolved.by,
            method: resolved.method,
            who: resolved.who,
            note: resolved.note,
        }
    }
}

/// A repair that was proposed, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// What it is called in its run.
    pub id: String,
    /// The command.
    pub command: String,
    /// The folder to run it in, below the root of the project.
    pub working_dir: Option<String>,
    /// What is behind the failure, in the proposer's words.
    pub root_cause: String,
    /// What is hoped for, in the proposer's words.
    pub expected_outcome: String,
    /// Why the guard allows it, asks or refuses, in one sentence.
    pub reason: String,
    /// Whether somebody allowed it.
    pub approved: bool,
    /// Its exit code, if it was run.
    pub exit_code: Option<i32>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// How it was confined.
    pub sandbox: Option<String>,
    /// What the sandbox lacked, what was removed or put back, and what was not kept, each in a sentence.
    pub traces: Vec<String>,
    /// The end of what it wrote.
    pub output: String,
    /// Why it did not help, if it did not.
    pub failed: Option<String>,
    /// Whether what had failed works since.
    #[serde(rename = "worked")]
    pub succeeded: bool,
}

impl From<RepairView> for Repair {
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
            traces: story.traces.lines(),
            output: story.output,
            failed: story.failure_reason,
            succeeded: story.has_helped,
        }
    }
}
