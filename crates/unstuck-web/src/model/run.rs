//! A run: one execution of a pipeline, a loop or a single command.

use serde::Serialize;
use unstuck_core::views::{RunStatus, RunSummary, SessionStatus};
use unstuck_core::{Kind, Level, Timestamp};
use unstuck_store::CostSummary;
use utoipa::ToSchema;

use super::money::known_cost;
use super::openapi_schemas;
use super::project::project_id;

/// A run at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    #[schema(example = "k3v9x0m2qa")]
    pub id: String,
    /// The root folder of its project.
    pub project: String,
    /// The id of its project.
    pub project_id: String,
    /// The command line.
    pub command: Vec<String>,
    /// The agent that this is known to be.
    pub agent: Option<String>,
    /// The model in use, as far as is known.
    pub model: Option<String>,
    /// The policy's id.
    pub policy: String,
    /// How many roles it has, if it is a pipeline.
    pub roles: Option<usize>,
    /// What is to be done, if it is a pipeline.
    pub task: Option<String>,
    /// The newest iteration, if it is a loop.
    pub iteration: Option<u32>,
    /// Where it stands.
    #[schema(schema_with = openapi_schemas::status)]
    pub status: RunStatus,
    /// Its state in five fields.
    #[schema(schema_with = openapi_schemas::session_status)]
    pub state: SessionStatus,
    /// Whether a process drives it at present.
    pub driven: bool,
    /// The kind of the newest failure.
    #[schema(schema_with = openapi_schemas::kind_or_null)]
    pub kind: Option<Kind>,
    /// The highest level that was reached.
    #[schema(schema_with = openapi_schemas::level_or_null)]
    pub recovery_level: Option<Level>,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started: Timestamp,
    /// When something last happened.
    #[schema(value_type = String, format = DateTime)]
    pub updated: Timestamp,
    /// When it ended, if it did.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished: Option<Timestamp>,
    /// When its wait is over, while it waits.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// How many attempts there were.
    pub attempt_count: u32,
    /// How many of them failed.
    pub error_count: u32,
    /// How many retries were decided on.
    pub retry_count: u32,
    /// Whether a person had to be asked.
    pub is_hiccup: bool,
    /// What it cost, in USD, as far as is known; null where nothing of it is known. `unknownPrice` tells whether that is
    /// all.
    pub cost_usd: Option<f64>,
    /// How many of its calls used tokens whose price is not known.
    pub unknown_price: u64,
    /// How many tokens it used, as far as is known.
    pub tokens: u64,
    /// The exit code that the caller got.
    pub exit_code: Option<i32>,
    /// Why it stands where it stands, in one sentence.
    pub reason: Option<String>,
}

impl Run {
    /// A run as it stands, and whether a process drives it.
    pub fn from_view(view: RunSummary, driven: bool) -> Self {
        let state = SessionStatus::for_run(&view, driven);
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
            driven,
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

    /// The name of the client of a gateway whose calls this run holds; none where it is a run of its own.
    pub fn gateway_client(&self) -> Option<&str> {
        gateway_client(&self.command)
    }

    /// Whether it should continue and no process supervises it.
    pub fn is_abandoned(&self) -> bool {
        self.finished.is_none() && !self.driven
    }
}

/// What the command of a run begins with that holds the calls of a client of a gateway.
const GATEWAY_COMMAND: &str = "(gateway)";

/// The name of the client of a gateway, where this is no command that was run.
pub(super) fn gateway_client(command: &[String]) -> Option<&str> {
    match command {
        [first, name, ..] if first == GATEWAY_COMMAND => Some(name),
        _ => None,
    }
}

/// What was used: what agents told, and what the gateway saw of the others.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spending {
    /// The day, project, run, session, model or upstream; empty where there is none.
    pub id: String,
    /// How many calls the gateway saw.
    pub calls: u64,
    /// How many of them were answered after something had failed.
    pub recovered: u64,
    /// How many of them failed, or broke off.
    pub failed: u64,
    /// How often an upstream was asked.
    #[serde(rename = "tries")]
    pub api_attempts: u64,
    /// How many tokens were sent anew.
    pub input_tokens: u64,
    /// How many were sent again and kept by the provider.
    pub cached_tokens: u64,
    /// How many were written by models.
    pub output_tokens: u64,
    /// What was used, in USD, as far as is known: what agents told, and what the gateway saw of the others. Null where
    /// nothing of it is known.
    pub cost_usd: Option<f64>,
    /// How many of the calls used tokens whose price is not known.
    pub unknown_price: u64,
}

impl From<CostSummary> for Spending {
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
