//! A session: one agent's conversation within a run, or of a gateway client; and what people can do about it.

use serde::{Deserialize, Serialize};
use unstuck_core::decision::RetryAttempt;
use unstuck_core::event::SessionSpec;
use unstuck_core::views::{RunStatus, SessionStatus, SessionSummary};
use unstuck_core::{Kind, Level, Timestamp};
use utoipa::ToSchema;

use super::cost_estimate::CostEstimateResponse;
use super::model_switch::ModelSwitchResponse;
use super::money::known_cost;
use super::openapi_schemas;
use super::project::project_id;
use super::run::Run;

/// A session at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResponse {
    /// Its id.
    #[schema(example = "k3v9x0m2qa-1")]
    pub id: String,
    /// Its run.
    pub run: String,
    /// The root folder of its project.
    pub project: String,
    /// The id of its project.
    pub project_id: String,
    /// Which role it plays, in a pipeline.
    pub role: Option<String>,
    /// The iteration of the loop, in a pipeline.
    pub iteration: Option<u32>,
    /// Which of several that play the same role at the same time, in a pipeline.
    pub instance: Option<u32>,
    /// The agent that it is known to be.
    pub agent: Option<String>,
    /// The model in use, as far as is known.
    pub model: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// The policy's id.
    pub policy: Option<String>,
    /// Where it stands.
    #[schema(schema_with = openapi_schemas::status)]
    pub status: RunStatus,
    /// Its state in five fields.
    #[schema(schema_with = openapi_schemas::session_status)]
    pub state: SessionStatus,
    /// Whether a process drives its run at present.
    pub driven: bool,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started: Timestamp,
    /// When it ended, if it did.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished: Option<Timestamp>,
    /// When its wait is over, while it waits.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// How many attempts there were.
    pub attempt_count: u32,
    /// How many attempts the policy's retries allow for a failure that is only repeated; null where that is not known.
    pub max_attempts: Option<u32>,
    /// How many attempts failed.
    pub error_count: u32,
    /// How many retries were decided on.
    pub retry_count: u32,
    /// Whether a person had to be asked.
    pub is_hiccup: bool,
    /// The kind of the newest failure.
    #[schema(schema_with = openapi_schemas::kind_or_null)]
    pub last_error: Option<Kind>,
    /// The highest level that was reached.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub recovery_level: Option<Level>,
    /// What it cost, in USD, as far as is known; null where nothing of it is known.
    pub cost_usd: Option<f64>,
    /// How many of its calls used tokens whose price is not known.
    pub unknown_price: u64,
    /// How many tokens it used, as far as is known.
    pub tokens: u64,
    /// The agent's own id of the conversation.
    pub agent_session: Option<String>,
    /// How long one attempt may take, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Why it stands where it stands, in one sentence.
    pub reason: Option<String>,
    /// Its failed tries, and how long was waited after each.
    pub retries: Vec<RetrySummary>,
    /// The changes of its model.
    pub model_changes: Vec<ModelSwitchResponse>,
}

impl SessionResponse {
    /// A session as it stands in its run; its history is added by whoever knows it.
    pub fn from_view(view: SessionSummary, spec: Option<&SessionSpec>, run: &Run) -> Self {
        let state = SessionStatus::for_session(&view, run.is_abandoned());
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
            driven: run.driven,
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
            agent_session: view.agent_session,
            timeout_ms: spec.and_then(|spec| spec.timeout_ms),
            reason: view.reason,
            retries: Vec::new(),
            model_changes: Vec::new(),
        }
    }
}

impl SessionResponse {
    /// The name of the client of a gateway that this is; none where a command is run.
    pub fn gateway_client(&self) -> Option<&str> {
        super::run::gateway_client(&self.command)
    }
}

/// One failed try, and the retry that followed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetrySummary {
    /// The number of the try, from 1.
    pub attempt_number: u32,
    /// What kind of failure it was.
    #[schema(schema_with = openapi_schemas::kind)]
    pub error: Kind,
    /// What was said about it.
    pub error_message: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// How long was waited before the next try, in milliseconds.
    pub delay_ms: u64,
    /// Whether the next try succeeded.
    pub succeeded: bool,
}

impl From<RetryAttempt> for RetrySummary {
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

/// How a session is to be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RetryOptions {
    /// Whether the prompt tells what went wrong: the error, the stack trace, the output that failed.
    pub with_context: bool,
    /// Words of a person that are added to the prompt.
    #[schema(max_length = 20000)]
    #[serde(rename = "words")]
    pub message: Option<String>,
    /// The prompt as the person has edited it; in place of what would be sent.
    #[schema(max_length = 400000)]
    pub prompt: Option<String>,
    /// Another model.
    #[schema(max_length = 200)]
    pub model: Option<String>,
    /// How long the attempt may take, such as `20m`.
    #[schema(example = "20m", max_length = 40)]
    pub timeout: Option<String>,
}

/// What a retry would send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryPrompt {
    /// The prompt as it would be sent.
    pub prompt: String,
    /// The prompt before.
    pub original: String,
    /// Whether the agent's conversation goes on, so that only a message is sent.
    pub continues: bool,
    /// The model that would be used, as far as is known.
    pub model: Option<String>,
    /// How long the attempt may take, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// A retry has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryStarted {
    /// The run in which the session goes on: its own, or a new one.
    pub run: String,
    /// The session that goes on.
    pub session: String,
    /// What happens now, in one sentence.
    #[serde(rename = "doing")]
    pub next_action: String,
}

/// A session is to go on with a stronger model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ModelSwitchRequest {
    /// Which model; the next one of its ladder where left out.
    #[schema(max_length = 200)]
    pub to: Option<String>,
    /// Without it nothing is changed, and only the estimate is answered.
    pub confirm: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelSwitchResult {
    /// What it is expected to cost more.
    pub estimate: CostEstimateResponse,
    /// The change that was made; null as long as it was not confirmed.
    pub change: Option<ModelSwitchResponse>,
}
