//! What a role runs, and what is watched over meanwhile.

use std::cell::Cell;

use unstuck_core::agent::{Agent, CommandInputs};
use unstuck_core::loop_detection::LoopLimits;

use super::budget_tracker::BudgetTracker;
use crate::prompt::PromptFault;
use crate::worktree::SnapshotStore;

/// What a role runs, as it is before anything is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleInvocation {
    /// The agent.
    pub agent: Agent,
    /// The role's own command line, for an agent that has none.
    pub command: Vec<String>,
    /// The prompt, filled in.
    pub prompt: String,
    /// The model, as the agent spells it.
    pub model: Option<String>,
    /// The tools that it may use without being asked.
    pub tools: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// How long its output may be, in characters.
    pub max_output: Option<u64>,
    /// Why the prompt could not be filled in, if it could not.
    pub prompt_fault: Option<PromptFault>,
}

/// A role that is being run, and what is watched over meanwhile.
#[derive(Clone, Copy)]
pub struct RoleContext<'a> {
    pub(super) invocation: &'a RoleInvocation,
    /// When the agent counts as stuck.
    pub(super) loop_limits: &'a LoopLimits,
    /// Where the changes of each attempt are kept.
    pub(super) snapshots: Option<&'a SnapshotStore>,
    /// Whether it was told that they cannot be kept.
    pub(super) is_snapshot_warning_shown: &'a Cell<bool>,
    /// Whether the others go on without it, so that nobody has to be asked.
    pub(super) optional: bool,
    /// Whether what a failed attempt changed is undone.
    pub(super) rollback: bool,
    /// What may be used.
    pub(super) budget: &'a BudgetTracker<'a>,
}

impl RoleInvocation {
    /// It as a call of its agent.
    pub(super) fn agent_call(&self) -> CommandInputs<'_> {
        CommandInputs {
            command: &self.command,
            prompt: &self.prompt,
            model: self.model.as_deref(),
            tools: &self.tools,
            args: &self.args,
            ..CommandInputs::default()
        }
    }
}
