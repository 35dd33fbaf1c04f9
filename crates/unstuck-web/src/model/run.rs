//! A run: one execution of a pipeline, a loop or a single command.

use serde::Serialize;
use unstuck_core::views::{RunStatus, RunSummary, SessionStatusSummary};
use unstuck_core::{FailureKind, RecoveryLevel, Timestamp};
use unstuck_store::CostSummary;
use utoipa::ToSchema;

use super::money::known_cost;
use super::openapi_schemas;
use super::project::project_id;

/// A summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSummaryResponse {
    /// Id of the run.
    #[schema(example = "k3v9x0m2qa")]
    pub id: String,
    /// Root directory of the project.
    pub project: String,
    /// Id of the project.
    pub project_id: String,
    /// Command line.
    pub command: Vec<String>,
    /// Recognized agent.
    pub agent: Option<String>,
    /// Current model, if known.
    pub model: Option<String>,
    /// Id of the policy.
    pub policy: String,
    /// Number of roles, if it is a pipeline.
    pub roles: Option<usize>,
    /// Task, if it is a pipeline.
    pub task: Option<String>,
    /// Latest iteration, if it is a loop.
    pub iteration: Option<u32>,
    /// Status of the run.
    #[schema(schema_with = openapi_schemas::status)]
    pub status: RunStatus,
    /// State in five fields.
    #[schema(schema_with = openapi_schemas::session_status)]
    pub state: SessionStatusSummary,
    /// True if a process currently supervises it.
    pub supervised: bool,
    /// Kind of the latest failure.
    #[schema(schema_with = openapi_schemas::kind_or_null)]
    pub kind: Option<FailureKind>,
    /// Highest recovery level reached.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub recovery_level: Option<RecoveryLevel>,
    /// Start time.
    #[schema(value_type = String, format = DateTime)]
    pub started: Timestamp,
    /// Time of the last event.
    #[schema(value_type = String, format = DateTime)]
    pub updated: Timestamp,
    /// End time, if it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished: Option<Timestamp>,
    /// End of the current wait.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// Number of attempts.
    pub attempt_count: u32,
    /// Number of failed attempts.
    pub error_count: u32,
    /// Number of retries decided.
    pub retry_count: u32,
    /// True if human input was needed.
    pub is_hiccup: bool,
    /// Known cost in USD; null if none of it is known. `unknownPrice` shows whether it is complete.
    pub cost_usd: Option<f64>,
    /// Number of calls that used tokens of unknown price.
    pub unknown_price: u64,
    /// Known number of tokens used.
    pub tokens: u64,
    /// Exit code returned to the caller.
    pub exit_code: Option<i32>,
    /// Reason for the current status, in one sentence.
    pub reason: Option<String>,
}

impl RunSummaryResponse {
    /// Creates the summary of a run, and records whether a process supervises it.
    pub fn from_view(view: RunSummary, supervised: bool) -> Self {
        let state = SessionStatusSummary::for_run(&view, supervised);
        Self {
            id: view.id.as_str().to_owned(),
            project_id: project_id(&view.project),
            project: view.project,
            command: view.command,
            agent: view.agent,
            model: view.model,
            policy: view.policy,
            roles: view.roles,
            task: view.task,
            iteration: view.iteration,
            status: state.state,
            state,
            supervised,
            kind: view.kind,
            recovery_level: view.recovery_level,
            started: view.started,
            updated: view.updated,
            finished: view.finished,
            until: view.until,
            attempt_count: view.attempts,
            error_count: view.error_count,
            retry_count: view.retry_count,
            is_hiccup: view.was_escalated,
            cost_usd: known_cost(view.cost_usd, view.unpriced_count),
            unknown_price: view.unpriced_count,
            tokens: view.tokens,
            exit_code: view.exit_code,
            reason: view.reason,
        }
    }

    /// Returns the name of the gateway client whose calls this run holds, or `None` for a normal run.
    pub fn gateway_client(&self) -> Option<&str> {
        gateway_client(&self.command)
    }

    /// Returns true if the run should continue and no process supervises it.
    pub fn is_orphaned(&self) -> bool {
        self.finished.is_none() && !self.supervised
    }
}

/// First word of the command of a run that holds the calls of a gateway client.
const GATEWAY_COMMAND: &str = "(gateway)";

/// Returns the name of the gateway client, or `None` for a real command.
pub(super) fn gateway_client(command: &[String]) -> Option<&str> {
    match command {
        [first, name, ..] if first == GATEWAY_COMMAND => Some(name),
        _ => None,
    }
}

/// Usage, as reported by agents and, for the others, as measured by the gateway.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    /// Day, project, run, session, model or upstream; empty if there is none.
    pub id: String,
    /// Number of calls seen by the gateway.
    pub calls: u64,
    /// Number of calls that succeeded after a failure.
    pub recovered: u64,
    /// Number of calls that failed or were interrupted.
    pub failed: u64,
    /// Number of API attempts.
    pub api_attempts: u64,
    /// Number of uncached input tokens.
    pub input_tokens: u64,
    /// Number of cached input tokens.
    pub cached_tokens: u64,
    /// Number of output tokens.
    pub output_tokens: u64,
    /// Known cost in USD, as reported by agents or, for the others, measured by the gateway. Null if none of it is
    /// known.
    pub cost_usd: Option<f64>,
    /// Number of calls that used tokens of unknown price.
    pub unknown_price: u64,
}

impl From<CostSummary> for UsageTotals {
    fn from(spent: CostSummary) -> Self {
        Self {
            id: spent.id,
            calls: spent.calls,
            recovered: spent.recovered,
            failed: spent.failed,
            api_attempts: spent.tries,
            input_tokens: spent.input_tokens,
            cached_tokens: spent.cached_tokens,
            output_tokens: spent.output_tokens,
            cost_usd: known_cost(spent.cost_usd, spent.unpriced),
            unknown_price: spent.unpriced,
        }
    }
}
