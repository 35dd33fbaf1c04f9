//! A session, that is, an agent's conversation within a run or of a gateway client, and the actions on it.

use serde::{Deserialize, Serialize};
use unstuck_core::decision::RetryAttempt;
use unstuck_core::event::SessionSpec;
use unstuck_core::views::{RunStatus, SessionStatusSummary, SessionSummary};
use unstuck_core::{FailureKind, RecoveryLevel, Timestamp};
use utoipa::ToSchema;

use super::extra_cost_estimate::ExtraCostEstimateResponse;
use super::model_switch::ModelSwitchEntry;
use super::money::known_cost;
use super::openapi_schemas;
use super::project::project_id;
use super::run::RunSummaryResponse;

/// A summary of a session.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResponse {
    /// Id of the session.
    #[schema(example = "k3v9x0m2qa-1")]
    pub id: String,
    /// Id of the run.
    pub run: String,
    /// Root directory of the project.
    pub project: String,
    /// Id of the project.
    pub project_id: String,
    /// Role, in a pipeline.
    pub role: Option<String>,
    /// Iteration of the loop, in a pipeline.
    pub iteration: Option<u32>,
    /// Instance of the role, if several run in parallel in a pipeline.
    pub instance: Option<u32>,
    /// Recognized agent.
    pub agent: Option<String>,
    /// Current model, if known.
    pub model: Option<String>,
    /// Command line.
    pub command: Vec<String>,
    /// Id of the policy.
    pub policy: Option<String>,
    /// Status of the session.
    #[schema(schema_with = openapi_schemas::status)]
    pub status: RunStatus,
    /// State in five fields.
    #[schema(schema_with = openapi_schemas::session_status)]
    pub state: SessionStatusSummary,
    /// True if a process currently supervises its run.
    pub supervised: bool,
    /// Start time.
    #[schema(value_type = String, format = DateTime)]
    pub started: Timestamp,
    /// End time, if it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished: Option<Timestamp>,
    /// End of the current wait.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// Number of attempts.
    pub attempt_count: u32,
    /// Number of attempts the policy allows for a failure that only recurs; null if unknown.
    pub max_attempts: Option<u32>,
    /// Number of failed attempts.
    pub error_count: u32,
    /// Number of retries decided.
    pub retry_count: u32,
    /// True if human input was needed.
    pub is_hiccup: bool,
    /// Kind of the latest failure.
    #[schema(schema_with = openapi_schemas::kind_or_null)]
    pub last_error: Option<FailureKind>,
    /// Highest recovery level reached.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub recovery_level: Option<RecoveryLevel>,
    /// Known cost in USD; null if none of it is known.
    pub cost_usd: Option<f64>,
    /// Number of calls that used tokens of unknown price.
    pub unknown_price: u64,
    /// Known number of tokens used.
    pub tokens: u64,
    /// Conversation id of the agent.
    pub conversation: Option<String>,
    /// Time limit of an attempt in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Reason for the current status, in one sentence.
    pub reason: Option<String>,
    /// Failed attempts and the delay after each.
    pub retries: Vec<RetryHistoryEntry>,
    /// Model switches.
    pub model_changes: Vec<ModelSwitchEntry>,
}

impl SessionResponse {
    /// Creates the summary of a session in its run; the caller adds the history.
    pub fn from_view(
        view: SessionSummary,
        spec: Option<&SessionSpec>,
        run: &RunSummaryResponse,
    ) -> Self {
        let state = SessionStatusSummary::for_session(&view, run.is_orphaned());
        let (part, policy) = (view.part, spec.map(|spec| &spec.policy));
        Self {
            id: view.id.as_str().to_owned(),
            run: run.id.clone(),
            project: run.project.clone(),
            project_id: project_id(&run.project),
            iteration: part.as_ref().map(|part| part.iteration),
            instance: part.as_ref().map(|part| part.instance),
            role: part.map(|part| part.role),
            agent: view.agent,
            model: view.model,
            command: spec.map(|spec| spec.command.clone()).unwrap_or_default(),
            policy: policy.map(|policy| policy.id.clone()),
            status: state.state,
            state,
            supervised: run.supervised,
            started: view.started,
            finished: view.finished,
            until: view.until,
            attempt_count: view.attempts,
            max_attempts: policy.map(|policy| policy.max_retries.saturating_add(1)),
            error_count: view.error_count,
            retry_count: view.retry_count,
            is_hiccup: view.was_escalated,
            last_error: view.last_error,
            recovery_level: view.recovery_level,
            cost_usd: known_cost(view.cost_usd, view.unpriced_count),
            unknown_price: view.unpriced_count,
            tokens: view.tokens,
            conversation: view.conversation,
            timeout_ms: spec.and_then(|spec| spec.timeout_ms),
            reason: view.reason,
            retries: Vec::new(),
            model_changes: Vec::new(),
        }
    }
}

impl SessionResponse {
    /// Returns the name of the gateway client, or `None` for a real command.
    pub fn gateway_client(&self) -> Option<&str> {
        super::run::gateway_client(&self.command)
    }
}

/// A failed attempt and the retry that followed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryHistoryEntry {
    /// Number of the attempt, from 1.
    pub attempt_number: u32,
    /// Kind of failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub error: FailureKind,
    /// Error message.
    pub error_message: String,
    /// Time of the failure.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// Delay before the next attempt, in milliseconds.
    pub delay_ms: u64,
    /// True if the next attempt succeeded.
    pub succeeded: bool,
}

impl From<RetryAttempt> for RetryHistoryEntry {
    fn from(told: RetryAttempt) -> Self {
        Self {
            attempt_number: told.attempt_number,
            error: told.error,
            error_message: told.error_message,
            timestamp: told.timestamp,
            delay_ms: told.delay_ms,
            succeeded: told.succeeded,
        }
    }
}

/// Options for retrying a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SessionRetryBody {
    /// If set, the prompt includes the failure: the error, the stack trace and the failed output.
    pub with_context: bool,
    /// Additional instructions for the prompt.
    #[schema(max_length = 20000)]
    #[serde(alias = "words")]
    pub message: Option<String>,
    /// Edited prompt that replaces the generated one.
    #[schema(max_length = 400000)]
    pub prompt: Option<String>,
    /// Different model.
    #[schema(max_length = 200)]
    pub model: Option<String>,
    /// Time limit of the attempt, such as `20m`.
    #[schema(example = "20m", max_length = 40)]
    pub timeout: Option<String>,
}

/// The prompt that a retry would send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryPromptResponse {
    /// New prompt.
    pub prompt: String,
    /// Previous prompt.
    pub original: String,
    /// True if the conversation continues, so that only a message is sent.
    pub continues: bool,
    /// Model to be used, if known.
    pub model: Option<String>,
    /// Time limit of the attempt in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// A started retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRetryResponse {
    /// Run in which the session continues: its own or a new one.
    pub run: String,
    /// Session that continues.
    pub session: String,
    /// Next action, in one sentence.
    pub next_action: String,
}

/// A request to switch a session to a stronger model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ModelSwitchRequest {
    /// New model; if omitted, the next one of its ladder.
    #[schema(max_length = 200)]
    pub to: Option<String>,
    /// If not set, only the estimate is returned and nothing changes.
    pub confirm: bool,
}

/// The result of a model switch request.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelSwitchResult {
    /// Expected extra cost.
    pub estimate: ExtraCostEstimateResponse,
    /// Model switch that was made; null until confirmed.
    pub change: Option<ModelSwitchEntry>,
}
