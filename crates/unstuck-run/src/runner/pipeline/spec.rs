//! The specification of a pipeline: its roles and everything needed to run them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use unstuck_core::RetryPolicy;
use unstuck_core::agent::Agent;
use unstuck_core::escalation::EscalationDeadlinePolicy;
use unstuck_core::event::{
    OnStuck, RecordedPipelineLoopSettings, RecordedPipelineSettings, RecordedRoleSettings,
};
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::loop_detection::AgentLoopLimits;
use unstuck_core::project_settings_snapshot::{ProjectSettingChange, ProjectSettingsSnapshot};
use unstuck_core::usage_budget::{ConfiguredUsageBudgets, lower_limit};

use crate::blobs::content_hash;
use crate::prompt::RolePromptTemplate;
use crate::runner::repair::RepairSettings;
use crate::runner::run_request::RunAttemptOptions;

/// The specification of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineSpec {
    /// The root directory of the project.
    pub project: PathBuf,
    /// The working directory of the roles.
    pub cwd: PathBuf,
    /// The command line that started the run.
    pub command: Vec<String>,
    /// The task.
    pub task: String,
    /// The configuration file that defines the roles.
    pub config_path: Option<PathBuf>,
    /// Id of the policy for roles without their own.
    pub policy: String,
    /// Largest number of roles that run in parallel.
    pub parallel: u32,
    /// True if `checkpoint.json` is written after a failure.
    pub checkpoint: bool,
    /// The roles.
    pub roles: Vec<RolePlan>,
    /// Configured roles that are not part of this run.
    pub excluded_roles: Vec<String>,
    /// The loop; `None` to run once.
    pub loop_plan: Option<LoopPlan>,
    /// The budgets per run and per day.
    pub budget: ConfiguredUsageBudgets,
    /// Limits of the loop detection.
    pub stuck: AgentLoopLimits,
    /// True if snapshots of the work tree are kept.
    pub snapshots: bool,
    /// True if the changes of a failed attempt are undone.
    pub rollback: bool,
    /// The repair settings; `None` if repairs are disabled.
    pub repair: Option<RepairSettings>,
    /// Deadlines of escalations.
    pub patience: EscalationDeadlinePolicy,
    /// Descriptions of the further permissions that the project requests but that are not trusted.
    pub untrusted: Vec<String>,
    /// The accepted project settings and the pending changes.
    pub project_settings: AcceptedProjectSettings,
}

/// The accepted project settings of a run and the pending changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AcceptedProjectSettings {
    /// The settings in effect; `None` for a run of an older version, which did not record them.
    pub in_effect: Option<ProjectSettingsSnapshot>,
    /// The settings in the files, which take effect once a human approves them.
    pub on_disk: ProjectSettingsSnapshot,
    /// The differences that are not in effect yet.
    pub pending_changes: Vec<ProjectSettingChange>,
    /// The roles as named in the files now, even if not in effect yet.
    pub roles_on_disk: Vec<String>,
}

impl AcceptedProjectSettings {
    /// Returns the hash of the settings in effect.
    pub(super) fn hash(&self) -> Option<String> {
        let content = self.in_effect.as_ref()?.canonical_text();
        Some(content_hash(content.as_bytes()))
    }
}

/// A role with everything needed to run it.
#[derive(Debug, Clone, PartialEq)]
pub struct RolePlan {
    /// Its id.
    pub id: String,
    /// The roles that must be completed before.
    pub needs: Vec<String>,
    /// Number of parallel instances.
    pub instances: u32,
    /// True if the pipeline continues if the role fails.
    pub optional: bool,
    /// Its agent.
    pub agent: Agent,
    /// Its own command line, for an agent that has none.
    pub command: Vec<String>,
    /// The model, as the agent spells it.
    pub model: Option<String>,
    /// Its prompt template.
    pub prompt: RolePromptTemplate,
    /// The tools that are allowed without approval.
    pub tools: Vec<String>,
    /// Additional arguments.
    pub args: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Longest output, in characters.
    pub max_output: Option<u64>,
    /// The retry policy.
    pub policy: RetryPolicy,
    /// Sources of the policy's values.
    pub origins: BTreeMap<String, String>,
    /// The strategies for failures, if the role has its own.
    pub playbook: Option<RecoveryKnowledge>,
    /// Timeout of one attempt.
    pub timeout: Option<Duration>,
    /// Longest time without output in one attempt.
    pub idle_timeout: Option<Duration>,
    /// Further options of each attempt.
    pub options: RunAttemptOptions,
    /// Its settings by name, to detect changes later; long values are hashed.
    pub settings: BTreeMap<String, String>,
}

/// The loop of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopPlan {
    /// Largest number of iterations.
    pub max_iterations: u32,
    /// The condition that ends the loop; `None` to run all iterations.
    pub until: Option<LoopEndCondition>,
    /// Number of iterations without any change after which the loop is stuck.
    pub stuck_after: u32,
    /// The action if the loop is stuck.
    pub on_stuck: OnStuck,
}

/// The condition that ends a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoopEndCondition {
    /// A marker in the output of a role.
    pub promise: Option<CompletionMarker>,
    /// A check command that passes.
    pub check: Option<String>,
    /// True if every role must succeed.
    pub all_roles: bool,
    /// True if one of these conditions is enough.
    pub any: bool,
}

/// A text by which an agent declares the work complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionMarker {
    /// The role that must emit it; `None` for any role.
    pub role: Option<String>,
    /// The text.
    pub text: String,
}

impl PipelineSpec {
    /// Returns the role with an id.
    pub(super) fn role(&self, id: &str) -> Option<&RolePlan> {
        self.roles.iter().find(|role| role.id == id)
    }

    /// Excludes roles.
    pub fn exclude_roles(&mut self, is_left_out: impl Fn(&str) -> bool) {
        let (left_out, roles) = std::mem::take(&mut self.roles)
            .into_iter()
            .partition::<Vec<_>, _>(|role| is_left_out(&role.id));
        self.roles = roles;
        self.excluded_roles
            .extend(left_out.into_iter().map(|role| role.id));
    }

    /// Reverts budgets that were raised in the configuration since the run began and returns them: only an answer
    /// raises budgets.
    pub(super) fn revert_raised_budgets(
        &mut self,
        before: &RecordedPipelineSettings,
    ) -> Vec<String> {
        let mut raised = Vec::new();
        if let Some(budget) = before.budget {
            let kept = budget.tightened_to(self.budget);
            if kept != self.budget {
                raised.push("[budget]".to_owned());
            }
            self.budget = kept;
        }
        for role in &mut self.roles {
            let Some(then) = before.roles.iter().find(|one| one.id == role.id) else {
                continue;
            };
            let kept = lower_limit(then.max_cost, role.policy.max_cost);
            if kept != role.policy.max_cost {
                raised.push(format!("maxCost of {}", role.id));
            }
            role.policy.max_cost = kept;
        }
        raised
    }

    /// Returns the event with everything that a later process needs.
    pub(super) fn to_started_event(&self, knowledge: &str) -> RecordedPipelineSettings {
        RecordedPipelineSettings {
            cwd: self.cwd.display().to_string(),
            command: self.command.clone(),
            roles: self.roles.iter().map(RolePlan::to_started_event).collect(),
            excluded_roles: self.excluded_roles.clone(),
            task: self.task.clone(),
            config_path: self
                .config_path
                .as_ref()
                .map(|path| path.display().to_string()),
            policy: self.policy.clone(),
            parallel: self.parallel,
            checkpoint: self.checkpoint,
            loop_settings: self.loop_plan.as_ref().map(LoopPlan::to_started_event),
            budget: Some(self.budget),
            project_settings: self.project_settings.hash(),
            knowledge: knowledge.to_owned(),
        }
    }
}

impl RolePlan {
    fn to_started_event(&self) -> RecordedRoleSettings {
        RecordedRoleSettings {
            id: self.id.clone(),
            needs: self.needs.clone(),
            instances: self.instances,
            optional: self.optional,
            settings: self.settings.clone(),
            max_cost: self.policy.max_cost,
        }
    }
}

impl LoopPlan {
    fn to_started_event(&self) -> RecordedPipelineLoopSettings {
        RecordedPipelineLoopSettings {
            max_iterations: self.max_iterations,
            until: self.until.as_ref().map(LoopEndCondition::to_string),
            stuck_after: self.stuck_after,
            on_stuck: self.on_stuck,
        }
    }
}

impl std::fmt::Display for LoopEndCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut conditions = Vec::new();
        if let Some(promise) = &self.promise {
            let who = promise.role.as_deref().unwrap_or("a role");
            conditions.push(format!("{who} prints {}", promise.text));
        }
        if let Some(check) = &self.check {
            conditions.push(format!("`{check}` passes"));
        }
        if self.all_roles {
            conditions.push("all roles succeed".to_owned());
        }
        f.write_str(&conditions.join(if self.any { " or " } else { " and " }))
    }
}
