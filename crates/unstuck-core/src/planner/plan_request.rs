//! What a plan is made from, and what it is made of.

use serde::Serialize;
use serde_json::Value as Json;

use crate::decision::SuccessRates;
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::knowledge::{KnownTool, Playbook, ToolRole};

/// The most strategies that a plan holds before it asks a person.
pub const MAX_STRATEGIES: usize = 4;

/// Where the agent may always write, unless the request names another directory.
pub const DEFAULT_SCRATCH_DIR: &str = ".unstuck/sandbox";

/// What the task is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskType {
    /// Looking round: strategies that change nothing come first.
    Exploratory,
    /// Building something.
    Implementation,
}

/// What a plan is made from.
#[derive(Debug, Clone)]
pub struct PlanRequest<'a> {
    /// What is known about recovering.
    pub playbook: &'a Playbook,
    /// What was observed.
    pub failure: &'a Failure,
    /// What it was found to be.
    pub diagnosis: &'a Diagnosis,
    /// The arguments of the failed tool call.
    pub args: Option<&'a Json>,
    /// The names of the tools that the agent has; none means that they are not known.
    pub tools: Option<Vec<String>>,
    /// The programs that exist; none means that they are not known.
    pub programs: Option<Vec<String>>,
    /// What must not be: ids of strategies, risks, or words of a command.
    pub forbid: Vec<String>,
    /// What is allowed though it is not by default: `sudo`.
    pub allow: Vec<String>,
    /// The directory that the agent may work in.
    pub root: Option<String>,
    /// Where the agent may always write.
    pub sandbox: String,
    /// The names in the [directory](super::directory) that the failure is about.
    pub listing: Vec<String>,
    /// What was learnt from what happened before.
    pub odds: SuccessRates,
    /// What the task is like.
    pub task: Option<TaskType>,
}

impl<'a> PlanRequest<'a> {
    /// A request about which nothing but the failure is known.
    pub fn new(playbook: &'a Playbook, failure: &'a Failure, diagnosis: &'a Diagnosis) -> Self {
        Self {
            playbook,
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

    /// The tool that the agent has for a role, the most usual one if there are several.
    pub(super) fn tool_for(&self, role: ToolRole) -> Option<&'a KnownTool> {
        let listed = |tool: &&KnownTool| {
            let tools = self.tools.as_ref();
            tools.is_none_or(|tools| tools.contains(&tool.name))
        };
        self.playbook.tools(role).find(listed)
    }
}

/// One strategy of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStrategy {
    /// Its place in the plan, from 1.
    pub priority: u32,
    /// The id of the strategy.
    pub strategy: String,
    /// Which way of doing it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The chance that it helps, from 0 to 1.
    pub confidence: f64,
    /// How many turns of the agent it takes.
    pub estimated_iterations: u32,
    /// What to do, in order.
    pub steps: Vec<PlanStep>,
    /// The strategies to try if this one fails, in order.
    pub fallback_chain: Vec<String>,
}

/// One tool call of a strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// What it does, in the imperative.
    pub action: String,
    /// The tool to call; `ask_user`, `retry_delay`, `retry` and `repair` are the supervisor's own.
    pub tool: String,
    /// The arguments of the call.
    pub args: Json,
    /// What shows that it worked.
    pub expected_outcome: String,
}
