//! A pipeline as it is to be run: its roles, with all that is needed to call them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use unstuck_core::RetryPolicy;
use unstuck_core::agent::Agent;
use unstuck_core::escalation::DeadlinePolicy;
use unstuck_core::event::{LoopStarted, OnStuck, PipelineStarted, RoleStarted};
use unstuck_core::knowledge::Playbook;
use unstuck_core::loop_detection::LoopLimits;
use unstuck_core::project_settings::{ProjectSettings, SettingChange};
use unstuck_core::usage_budget::{UsageBudget, lower_limit};

use crate::blobs::content_hash;
use crate::prompt::RolePromptTemplate;
use crate::runner::repair::RepairSettings;
use crate::runner::run_request::AttemptOptions;

/// A pipeline as it is to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineSpec {
    /// The root folder of the project.
    pub project: PathBuf,
    /// The folder that the roles work in.
    pub cwd: PathBuf,
    /// The command line that began it.
    pub command: Vec<String>,
    /// What is to be done.
    pub task: String,
    /// The configuration file that the roles come from.
    pub config_path: Option<PathBuf>,
    /// The id of the policy that counts where a role has none of its own.
    pub policy: String,
    /// How many roles may run side by side.
    pub parallel: u32,
    /// Whether `checkpoint.json` is written when something failed.
    pub checkpoint: bool,
    /// The roles.
    pub roles: Vec<RolePlan>,
    /// The roles of the configuration that are no part of this run.
    pub excluded_roles: Vec<String>,
    /// How often it is repeated, and until when; none for once.
    pub loop_plan: Option<LoopPlan>,
    /// What the run and all runs of a day may use.
    pub budget: UsageBudget,
    /// When an agent counts as stuck.
    pub stuck: LoopLimits,
    /// Whether the changes of each attempt are kept.
    pub snapshots: bool,
    /// Whether what a failed attempt changed is undone.
    pub rollback: bool,
    /// What the owner allows to repair; none where nothing is repaired.
    pub repair: Option<RepairSettings>,
    /// How long is waited for people.
    pub patience: DeadlinePolicy,
    /// What the project would allow beyond that if its owner trusted it, in words.
    pub untrusted: Vec<String>,
    /// What of the project's own files it goes by, and how they differ from that.
    pub project_settings: AcceptedSettings,
}

/// What of the project's own files a run goes by, and how they differ from that.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AcceptedSettings {
    /// What it goes by; none for a run of an older version, which does not know.
    pub in_effect: Option<ProjectSettings>,
    /// What the files say, which counts once a person approves it.
    pub on_disk: ProjectSettings,
    /// What is different, and does not count yet.
    pub pending_changes: Vec<SettingChange>,
    /// The roles as the files name them now, also where that does not count yet.
    pub roles_on_disk: Vec<String>,
}

impl AcceptedSettings {
    /// The hash of what it goes by.
    pub(super) fn hash(&self) -> Option<String> {
        let content = self.in_effect.as_ref()?.canonical_text();
        Some(content_hash(content.as_bytes()))
    }
}

/// A role with all that is needed to call it.
#[derive(Debug, Clone, PartialEq)]
pub struct RolePlan {
    /// Its id.
    pub id: String,
    /// The roles that must be done before.
    pub needs: Vec<String>,
    /// How many play it at the same time.
    pub instances: u32,
    /// Whether others go on if it fails.
    pub optional: bool,
    /// Its agent.
    pub agent: Agent,
    /// Its own command line, for an agent that has none.
    pub command: Vec<String>,
    /// The model, as the agent spells it.
    pub model: Option<String>,
    /// Its prompt, with placeholders.
    pub prompt: RolePromptTemplate,
    /// The tools that it may use without being asked.
    pub tools: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// How long its output may be, in characters.
    pub max_output: Option<u64>,
    /// How far to go.
    pub policy: RetryPolicy,
    /// Where the values of the policy come from.
    pub origins: BTreeMap<String, String>,
    /// What is done about failures, where the role has its own ways.
    pub playbook: Option<Playbook>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long one attempt may be silent.
    pub idle_timeout: Option<Duration>,
    /// What else counts for every attempt.
    pub options: AttemptOptions,
    /// Its configuration, by name, to tell later what was changed; what is long is a hash.
    pub settings: BTreeMap<String, String>,
}

/// How often a pipeline is repeated, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopPlan {
    /// The most iterations.
    pub max_iterations: u32,
    /// When it is done; none if it is repeated for as often as it may.
    pub until: Option<LoopCondition>,
    /// After how many iterations without any change it is stuck.
    pub stuck_after: u32,
    /// What is done then.
    pub on_stuck: OnStuck,
}

/// When a loop is done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoopCondition {
    /// A text in the output of a role, or of any.
    pub promise: Option<CompletionMarker>,
    /// A command that passes.
    pub check: Option<String>,
    /// Every role did what it should.
    pub all_roles: bool,
    /// Whether one of these suffices.
    pub any: bool,
}

/// A text by which an agent says that all is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionMarker {
    /// The role that has to say it; none for any.
    pub role: Option<String>,
    /// The text.
    pub text: String,
}

impl PipelineSpec {
    /// The role of that id.
    pub(super) fn role(&self, id: &str) -> Option<&RolePlan> {
        self.roles.iter().find(|role| role.id == id)
    }

    /// Leaves out some roles.
    pub fn exclude_roles(&mut self, is_left_out: impl Fn(&str) -> bool) {
        let (left_out, roles) = std::mem::take(&mut self.roles)
            .into_iter()
            .partition::<Vec<_>, _>(|role| is_left_out(&role.id));
        self.roles = roles;
        self.excluded_roles
            .extend(left_out.into_iter().map(|role| role.id));
    }

    /// Takes back what was raised of the budgets since the run began: only a person's answer raises them. Tells what was.
    pub(super) fn revert_raised_budgets(&mut self, before: &PipelineStarted) -> Vec<String> {
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

    /// What a later process needs to know of it.
    pub(super) fn to_started_event(&self, knowledge: &str) -> PipelineStarted {
        PipelineStarted {
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
    fn to_started_event(&self) -> RoleStarted {
        RoleStarted {
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
    fn to_started_event(&self) -> LoopStarted {
        LoopStarted {
            max_iterations: self.max_iterations,
            until: self.until.as_ref().map(LoopCondition::to_string),
            stuck_after: self.stuck_after,
            on_stuck: self.on_stuck,
        }
    }
}

impl std::fmt::Display for LoopCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut conditions = Vec::new();
        if let Some(promise) = &self.promise {
            let who = promise.role.as_deref().unwrap_or("a role");
            conditions.push(format!("{who} says {}", promise.text));
        }
        if let Some(check) = &self.check {
            conditions.push(format!("`{check}` passes"));
        }
        if self.all_roles {
            conditions.push("every role is fine".to_owned());
        }
        f.write_str(&conditions.join(if self.any { " or " } else { " and " }))
    }
}
