//! What a role runs, and what is watched over meanwhile.

use std::cell::Cell;

use unstuck_core::agent::{Agent, Call};
use unstuck_core::stuck::StuckLimits;

use super::budget::Purse;
use crate::prompt::PromptFault;
use crate::worktree::Snapshots;

/// What a role runs, as it is before anything is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleCall {
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
    pub fault: Option<PromptFault>,
}

/// A role that is being run, and what is watched over meanwhile.
#[derive(Clone, Copy)]
pub struct RoleWork<'a> {
    pub(super) call: &'a RoleCall,
    /// When the agent counts as stuck.
    pub(super) stuck: &'a StuckLimits,
    /// Where the changes of each attempt are kept.
    pub(super) snapshots: Option<&'a Snapshots>,
    /// Whether it was told that they cannot be kept.
    pub(super) told: &'a Cell<bool>,
    /// Whether the others go on without it, so that nobody has to be asked.
    pub(super) optional: bool,
    /// Whether what a failed attempt changed is undone.
    pub(super) rollback: bool,
    /// What may be used.
    pub(super) purse: &'a Purse<'a>,
}

impl RoleCall {
    /// It as a call of its agent.
    pub(super) fn call(&self) -> Call<'_> {
        Call {
            command: &self.command,
            prompt: &self.prompt,
            model: self.model.as_deref(),
            tools: &self.tools,
            args: &self.args,
            ..Call::default()
        }
    }
}
