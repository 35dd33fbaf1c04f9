//! Builds a runnable pipeline from the configuration.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use unstuck_config::section::{self, JsonRequirement, OnFailedAttempt, RoleSection};
use unstuck_core::event::OnStuck;
use unstuck_core::recovery_plan::shell_quote;
use unstuck_core::usage_budget::{ConfiguredUsageBudgets, UsageBudgetLimit};
use unstuck_run::answer_expectations::{AnswerExpectations, ExpectedSchema, JsonExpectation};
use unstuck_run::blobs::content_hash;
use unstuck_run::prompt::RolePromptTemplate;
use unstuck_run::runner::pipeline::{
    AcceptedProjectSettings, CompletionMarker, LoopEndCondition, LoopPlan, PipelineSpec, RolePlan,
};
use unstuck_run::runner::{RequestedRepairMode, RunAttemptOptions};

use crate::config::{self, Config, ConfigSources};
use crate::effective_repair_settings;
use crate::environment_variables;
use crate::error_report::error_with_hint;
use crate::project_lookup::project_of;

/// Command-line overrides for a pipeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct PipelineOptions {
    /// The task text.
    pub(crate) task: Option<String>,
    /// Maximum number of roles that run in parallel.
    pub(crate) parallel: Option<u32>,
    /// Maximum number of loop iterations.
    pub(crate) max_iterations: Option<u32>,
    /// If set, the process keeps waiting for human input instead of exiting.
    pub(crate) wait: bool,
    /// Time limit for retrying transient failures without progress.
    pub(crate) keep_trying: Option<Duration>,
    /// Repair mode of the environment.
    pub(crate) repair: RequestedRepairMode,
}

/// Builds the pipeline from the configuration, or an error that names the missing or invalid setting.
pub(crate) fn build_plan(
    config: &Config,
    wanted: &PipelineOptions,
    folder: &Path,
) -> Result<PipelineSpec> {
    let project = project_of(folder);
    if config.roles().is_empty() {
        let said = match config.files().last() {
            None => format!(
                "no unstuck.toml found in {} or its parent directories",
                folder.display()
            ),
            Some(file) => format!("{} defines no [[role]]", file.display()),
        };
        return Err(error_with_hint(
            said,
            "`unstuck run --help` shows an example; `unstuck exec -- COMMAND` runs a single command",
        ));
    }
    config::ensure_valid(config, &project)?;
    if wanted.max_iterations.is_some() && config.loop_section().is_none() {
        return Err(error_with_hint(
            "--max-iterations requires [loop] in the configuration",
            "add one, such as [loop] until = \"<promise>DONE</promise>\"",
        ));
    }
    if config::has_endless_loop(config) && wanted.max_iterations.is_none() {
        return Err(error_with_hint(
            "[loop] has no end condition",
            "set until = \"<promise>DONE</promise>\", until.check = \"npm test\" or until.all_roles = true, or limit the loop with max_iterations = 3",
        ));
    }
    let run = config.run();
    let task = wanted.task.clone().or(run.task.clone()).unwrap_or_default();
    let wait = wanted.wait || run.wait_for_human;
    let roles = config.roles().iter();
    let roles: Result<Vec<_>> = roles
        .map(|role| role_plan(config, role, wait, wanted.keep_trying))
        .collect();
    let repairs =
        effective_repair_settings::repair_setup_unattended(config, &project, wanted.repair)?;
    Ok(PipelineSpec {
        repair: repairs.terms,
        untrusted: repairs.untrusted,
        project_settings: AcceptedProjectSettings {
            in_effect: Some(config.project_settings().clone()),
            on_disk: config.written_settings().clone(),
            pending_changes: config.unapproved_changes().to_vec(),
            roles_on_disk: config.written_roles().to_vec(),
        },
        patience: config.escalations().deadline_policy(),
        excluded_roles: Vec::new(),
        cwd: project.clone(),
        command: command_line(wanted),
        task,
        config_path: config.files().last().map(|path| absolute_path(path)),
        policy: config
            .policy()
            .map_or_else(|| config.default_role_policy(), |policy| policy.id.clone()),
        // Parallel roles share one work tree: rolling back one would undo the work of another.
        parallel: match run.on_failed_attempt {
            OnFailedAttempt::Rollback => 1,
            OnFailedAttempt::Keep => wanted.parallel.unwrap_or(run.parallel).max(1),
        },
        checkpoint: config.error_recovery().save_checkpoint_on_failure,
        roles: roles?,
        loop_plan: config
            .loop_section()
            .map(|looping| loop_plan(looping, wanted)),
        budget: budget(config.budget()),
        stuck: config.stuck().clone(),
        snapshots: run.snapshots,
        rollback: run.on_failed_attempt == OnFailedAttempt::Rollback,
        project,
    })
}

/// Returns an absolute path, so that the file is found wherever the run is resumed.
fn absolute_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or(path.to_owned())
}

/// Returns the limit, or none for 0, as in `timeout(1)`.
pub(crate) fn nonzero_limit(time: Option<Duration>) -> Option<Duration> {
    time.filter(|time| !time.is_zero())
}

/// Checks that a task is set if the prompt of a selected role uses `{{ task }}`.
pub(crate) fn check_task(plan: &PipelineSpec) -> Result<()> {
    let mut needing = plan
        .roles
        .iter()
        .filter(|role| role.prompt.uses_variable("task"));
    match needing.next() {
        Some(role) if plan.task.trim().is_empty() => Err(error_with_hint(
            format!(
                "context_error: the prompt of `{}` uses {{{{ task }}}}, but no task was given",
                role.id
            ),
            "run `unstuck run --task \"TASK\"`, or set task = \"…\" in [run]",
        )),
        _ => Ok(()),
    }
}

fn command_line(wanted: &PipelineOptions) -> Vec<String> {
    let mut words = vec!["unstuck".to_owned(), "run".to_owned()];
    if let Some(task) = &wanted.task {
        words.extend(["--task".to_owned(), task.clone()]);
    }
    words
}

fn role_plan(
    config: &Config,
    role: &RoleSection,
    wait: bool,
    keep_trying: Option<Duration>,
) -> Result<RolePlan> {
    let agent = config.agents().get(&role.agent).cloned();
    let agent = agent.with_context(|| format!("unknown agent `{}`", role.agent))?;
    let text = config.prompt_template(role).map_err(config::with_hint)?;
    let text = text.unwrap_or_default();
    let mut made = config.policy_for(role).map_err(config::with_hint)?;
    if let Some(time) = keep_trying.filter(|_| made.policy.enabled) {
        made.policy.extend_give_up_after(time);
        let from = "--keep-trying".to_owned();
        made.origins.insert("giveUpAfter".to_owned(), from);
    }
    let playbook = config.role_recovery_knowledge(role)?;
    let settings = output_settings(role, &text);
    Ok(RolePlan {
        id: role.id.clone(),
        needs: role.needs.clone(),
        instances: role.instances,
        optional: role.optional,
        command: role.command.clone(),
        model: role.model.clone(),
        prompt: RolePromptTemplate::new(&role.id, text),
        tools: role.allowed_tools.clone(),
        args: role.args.clone(),
        env: role.env.clone().into_iter().collect(),
        max_output: role.max_output,
        policy: made.policy,
        origins: made.origins,
        playbook: match playbook {
            // Settings shared by all roles are looked up when needed.
            Cow::Borrowed(_) => None,
            Cow::Owned(own) => Some(own),
        },
        timeout: nonzero_limit(role.timeout),
        idle_timeout: nonzero_limit(role.idle_timeout),
        options: RunAttemptOptions {
            expect: expectations(config, role)?,
            check: role.expect.check.clone(),
            wait,
            parks_when_stalled: !environment_variables::is_ci(),
            ..RunAttemptOptions::default()
        },
        agent,
        settings,
    })
}

fn expectations(config: &Config, role: &RoleSection) -> Result<AnswerExpectations> {
    let expect = &role.expect;
    let patterns: Result<Vec<_>, _> = expect.matches.iter().map(|text| text.parse()).collect();
    Ok(AnswerExpectations {
        sections: expect.sections.clone(),
        json: match &expect.json {
            JsonRequirement::No => None,
            JsonRequirement::Any => Some(JsonExpectation::Any),
            JsonRequirement::Schema(path) => Some(JsonExpectation::Schema(read_schema(
                config, &role.id, path,
            )?)),
        },
        diff: expect.diff,
        matches: patterns?,
        not_empty: expect.not_empty.unwrap_or(true),
    })
}

fn read_schema(config: &Config, role: &str, path: &Path) -> Result<ExpectedSchema> {
    let text = config
        .read_named_file(&format!("role.{role}.expect.json"), path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not a valid JSON Schema", path.display()))
}

/// Settings that the output of a role depends on. Limits are left out: changing them does not invalidate the output.
fn output_settings(role: &RoleSection, prompt: &str) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::from([
        ("agent".to_owned(), role.agent.clone()),
        ("prompt".to_owned(), content_hash(prompt.as_bytes())),
    ]);
    let mut set = |name: &str, value: String| {
        if !value.is_empty() {
            settings.insert(name.to_owned(), value);
        }
    };
    let words = |words: &[String]| {
        let quoted: Vec<_> = words.iter().map(|word| shell_quote(word)).collect();
        quoted.join(" ")
    };
    set("model", role.model.clone().unwrap_or_default());
    set("command", words(&role.command));
    set("args", words(&role.args));
    set("allowed_tools", role.allowed_tools.join(", "));
    if !role.env.is_empty() {
        set("env", content_hash(format!("{:?}", role.env).as_bytes()));
    }
    set("expect.sections", role.expect.sections.join(", "));
    set(
        "expect.check",
        role.expect.check.clone().unwrap_or_default(),
    );
    settings
}

fn loop_plan(looping: &section::PipelineLoopSection, wanted: &PipelineOptions) -> LoopPlan {
    let until = &looping.until;
    let until = LoopEndCondition {
        promise: until.promise.as_ref().map(|promise| CompletionMarker {
            role: promise.role.clone(),
            text: promise.text.clone(),
        }),
        check: until.check.clone(),
        all_roles: until.all_roles,
        any: until.any,
    };
    LoopPlan {
        max_iterations: wanted
            .max_iterations
            .unwrap_or(looping.max_iterations)
            .max(1),
        until: (until != LoopEndCondition::default()).then_some(until),
        stuck_after: looping.stuck_after,
        on_stuck: match looping.on_stuck {
            section::OnStuckPipelineLoop::Escalate => OnStuck::Escalate,
            section::OnStuckPipelineLoop::Stop => OnStuck::Stop,
            section::OnStuckPipelineLoop::Continue => OnStuck::Continue,
        },
    }
}

fn budget(budget: &section::BudgetSection) -> ConfiguredUsageBudgets {
    let allowance = |of: &section::BudgetLimitSection| UsageBudgetLimit {
        usd: of.usd,
        tokens: of.tokens,
    };
    ConfiguredUsageBudgets {
        per_run: allowance(&budget.per_run),
        per_day: allowance(&budget.per_day),
    }
}

/// Configuration sources of a run: the file it was started with, unless another one is named explicitly.
pub(crate) fn sources_for_run<'a>(
    path: Option<&'a str>,
    sources: ConfigSources<'a>,
) -> Result<ConfigSources<'a>> {
    match (sources.named, path) {
        (Some(_), _) | (None, None) => Ok(sources),
        (None, Some(path)) if !Path::new(path).is_file() => Err(error_with_hint(
            format!("configuration file {path} of this run no longer exists"),
            "specify another file with --config FILE",
        )),
        (None, Some(path)) => Ok(sources.with_file(Some(Path::new(path)))),
    }
}
