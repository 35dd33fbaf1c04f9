//! The input and output of the planner.

use serde::Serialize;
use serde_json::Value as Json;

use crate::decision::SuccessRates;
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::knowledge::{KnownAgentTool, RecoveryKnowledge, ToolRole};

/// The maximum number of strategies in a plan before it escalates.
pub const MAX_STRATEGIES: usize = 4;

/// The directory that is always writable for the agent, unless the request names another one.
pub const DEFAULT_SCRATCH_DIR: &str = ".unstuck/sandbox";

/// The type of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskType {
    /// Exploration: strategies that change nothing come first.
    Exploratory,
    /// Implementation work.
    Implementation,
}

/// The input of the planner: the failure, its diagnosis and the agent's tools.
#[derive(Debug, Clone)]
pub struct RecoveryPlanRequest<'a> {
    /// The recovery knowledge.
    pub recovery_knowledge: &'a RecoveryKnowledge,
    /// The observed failure.
    pub failure: &'a Failure,
    /// Its diagnosis.
    pub diagnosis: &'a Diagnosis,
    /// The arguments of the failed tool call.
    pub args: Option<&'a Json>,
    /// The names of the agent's tools; none if unknown.
    pub tools: Option<Vec<String>>,
    /// The available programs; none if unknown.
    pub programs: Option<Vec<String>>,
    /// The forbidden strategies: their ids, risks, or words of a command.
    pub forbid: Vec<String>,
    /// Permissions that are not granted by default: `sudo`.
    pub allow: Vec<String>,
    /// The directory that the agent may work in.
    pub root: Option<String>,
    /// The directory that is always writable for the agent.
    pub sandbox: String,
    /// The names in the [directory](super::failure_directory) that the failure is about.
    pub listing: Vec<String>,
    /// The learned success rates.
    pub odds: SuccessRates,
    /// The type of the task.
    pub task: Option<TaskType>,
}

impl<'a> RecoveryPlanRequest<'a> {
    /// Creates a request with only the failure known.
    pub fn new(
        recovery_knowledge: &'a RecoveryKnowledge,
        failure: &'a Failure,
        diagnosis: &'a Diagnosis,
    ) -> Self {
        Self {
            recovery_knowledge,
            failure,
            diagnosis,
            args: None,
            tools: None,
            programs: None,
            forbid: Vec::new(),
            allow: Vec::new(),
            root: None,
            sandbox: DEFAULT_SCRATCH_DIR.to_owned(),
            listing: Vec::new(),
            odds: SuccessRates::empty(),
            task: None,
        }
    }

    /// Returns the agent's tool for a role, the most common one if there are several.
    pub(super) fn tool_for(&self, role: ToolRole) -> Option<&'a KnownAgentTool> {
        let listed = |tool: &&KnownAgentTool| {
            let tools = self.tools.as_ref();
            tools.is_none_or(|tools| tools.contains(&tool.name))
        };
        self.recovery_knowledge.tools(role).find(listed)
    }
}

/// A strategy of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStrategy {
    /// The position in the plan, from 1.
    pub priority: u32,
    /// The id of the strategy.
    pub strategy: String,
    /// The chosen variant of the strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The chance that it helps, from 0 to 1.
    pub confidence: f64,
    /// The estimated number of turns of the agent.
    pub estimated_iterations: u32,
    /// The steps, in order.
    pub steps: Vec<PlannedToolCall>,
    /// The strategies to try if this one fails, in order.
    pub fallback_chain: Vec<String>,
}

/// A tool call of a planned strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedToolCall {
    /// The description, in the imperative.
    pub action: String,
    /// The tool to call; `ask_user`, `wait`, `retry` and `repair` are provided by the supervisor.
    pub tool: String,
    /// The arguments of the call.
    pub args: Json,
    /// The expected outcome if it works.
    pub expected_outcome: String,
}
