//! The context of a role: its command and the limits of its session.

use std::cell::Cell;

use unstuck_core::agent::{Agent, AgentCommandInputs};
use unstuck_core::loop_detection::AgentLoopLimits;

use super::budget_tracker::BudgetTracker;
use crate::prompt::RolePromptError;
use crate::worktree::SnapshotStore;

/// The command of a role before any changes.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleAgentCommand {
    /// The agent.
    pub agent: Agent,
    /// The role's own command line, for an agent that has none.
    pub command: Vec<String>,
    /// The rendered prompt.
    pub prompt: String,
    /// The model, as the agent spells it.
    pub model: Option<String>,
    /// The tools that are allowed without approval.
    pub tools: Vec<String>,
    /// Additional arguments.
    pub args: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Longest output, in characters.
    pub max_output: Option<u64>,
    /// The error of rendering the prompt, if there was one.
    pub prompt_fault: Option<RolePromptError>,
}

/// The context of a running role.
#[derive(Clone, Copy)]
pub struct RoleContext<'a> {
    pub(super) invocation: &'a RoleAgentCommand,
    /// Limits of the loop detection.
    pub(super) loop_limits: &'a AgentLoopLimits,
    /// The store of work tree snapshots, if they are kept.
    pub(super) snapshots: Option<&'a SnapshotStore>,
    /// True if the warning about missing snapshots was shown.
    pub(super) is_snapshot_warning_shown: &'a Cell<bool>,
    /// True if the pipeline continues without it, so that nothing is escalated.
    pub(super) optional: bool,
    /// True if the changes of a failed attempt are undone.
    pub(super) rollback: bool,
    /// The budgets.
    pub(super) budget: &'a BudgetTracker<'a>,
}

impl RoleAgentCommand {
    /// Returns the inputs of the agent's command line.
    pub(super) fn agent_call(&self) -> AgentCommandInputs<'_> {
        AgentCommandInputs {
            command: &self.command,
            prompt: &self.prompt,
            model: self.model.as_deref(),
            tools: &self.tools,
            args: &self.args,
            ..AgentCommandInputs::default()
        }
    }
}
