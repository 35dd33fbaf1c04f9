//! `unstuck run`: runs the pipeline of a project.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::duration;
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;
use unstuck_run::runner::RunError;
use unstuck_run::runner::pipeline::{PartialRunSelection, PipelineSpec};

use super::resume;
use super::run_result::report_pipeline_result;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::effective_repair_settings::{self, RepairModeArg};
use crate::error_report::{error_with_hint, refusal};
use crate::gateway::PrivateGatewayMode;
use crate::output::Output;
use crate::pipeline_from_config::{self, PipelineOptions};
use crate::project_lookup::project_of;
use crate::project_setting_changes::{self, OnSettingChanges};
use crate::run_supervision::{self, PipelineStartMode, PipelineTask, Verbosity};

/// Run the pipeline defined in unstuck.toml
///
/// Independent roles run in parallel. A loop repeats the roles until the work is done. unstuck recovers from failures
/// as `unstuck exec` does. Outputs are in .unstuck/runs/RUN/roles.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck run --task \"add a search field to the shop\"
  unstuck run --config review.toml --only reviewer
  unstuck run --from tester                  (reuses earlier outputs of a previous run)
  unstuck run --resume-from-failure          (the same as `unstuck resume`)

Minimal unstuck.toml:
  [[role]]
  id = \"planner\"
  agent = \"claude\"
  prompt = \"Write a plan, under the heading # Plan, for this: {{ task }}\"
  expect.sections = [\"# Plan\"]

  [[role]]
  id = \"builder\"
  agent = \"claude\"
  prompt = \"Do it: {{ outputs.planner }}\"
  needs = [\"planner\"]
  allowed_tools = [\"Edit\", \"Write\", \"Bash\"]

Exit codes:
  0    success, including after recovery
  1    a role failed, or nothing to resume
  2    unstuck error (usage, configuration, database)
  3    needs your input; `unstuck resume` continues
  130  interrupted; `unstuck resume` continues")]
pub(crate) struct RunArgs {
    /// Task text; replaces {{ task }} in prompts
    #[arg(long, short, value_name = "TEXT")]
    task: Option<String>,

    /// Run only this role; reuse the outputs it needs from an earlier run
    #[arg(long, value_name = "ROLE", conflicts_with = "from")]
    only: Option<String>,

    /// Start at this role; reuse the outputs of earlier roles from an earlier run
    #[arg(long, value_name = "ROLE")]
    from: Option<String>,

    /// Maximum number of roles that run in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    parallel: Option<u32>,

    /// Maximum number of loop iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_iterations: Option<u32>,

    /// Keep waiting for human input instead of exiting
    #[arg(long)]
    wait: bool,

    /// Retry transient failures without progress for this long, such as 8h [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    keep_trying: Option<Duration>,

    /// Repair the environment: auto runs the fixes that your `[recovery]` allows, ask asks before each fix, off
    /// disables repairs [default: auto if the configuration has `[recovery]`, otherwise off]
    #[arg(long, value_name = "WHEN", value_enum)]
    repair: Option<RepairModeArg>,

    /// Do not run a gateway between the agents and their APIs
    #[arg(long)]
    no_gateway: bool,

    /// Resume the newest unfinished run of this project and reuse successful outputs
    #[arg(long, conflicts_with_all = ["only", "from"])]
    resume_from_failure: bool,

    /// With --resume-from-failure: continue even if the project's configuration or the inputs of finished roles have
    /// changed
    #[arg(long, requires = "resume_from_failure")]
    accept_changes: bool,

    /// With --resume-from-failure: re-run this role and all roles that depend on it (repeatable)
    #[arg(long, value_name = "ROLE", requires = "resume_from_failure")]
    restart: Vec<String>,

    /// Suppress unstuck's own output
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,

    /// Also print the output of the agents, each line prefixed with its role
    #[arg(long, short)]
    verbose: bool,

    /// Print a JSON summary of the run as the last line
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// True if a run is resumed.
    pub(crate) fn is_resume(&self) -> bool {
        self.resume_from_failure
    }

    fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::WithAgentOutput,
            _ => Verbosity::All,
        }
    }

    fn options(&self) -> PipelineOptions {
        PipelineOptions {
            task: self.task.clone(),
            parallel: self.parallel,
            max_iterations: self.max_iterations,
            wait: self.wait,
            keep_trying: self.keep_trying,
            repair: RepairModeArg::resolve(self.repair),
        }
    }
}

pub(crate) fn run(
    args: &RunArgs,
    config: &Config,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if args.resume_from_failure {
        let again = resume::ResumeRequest {
            accept_changes: args.accept_changes,
            on_changes: OnSettingChanges::from_flags(args.accept_changes, false),
            restart: &args.restart,
            options: args.options(),
            verbosity: args.verbosity(),
            json: args.json,
            gateway: PrivateGatewayMode::from_flag(args.no_gateway),
        };
        return resume::resume_newest_pipeline(&again, session, out);
    }
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    let repairs = effective_repair_settings::repair_setup(
        config,
        &project_of(&here),
        RepairModeArg::resolve(args.repair),
        !args.quiet,
    )?;
    let (plan, selection) = selected_roles(args, config, &here)?;
    let reload = |accepted: Option<&ProjectSettingsSnapshot>| {
        let config = project_setting_changes::load_for_run(&here, session.sources(), accepted)?;
        selected_roles(args, &config, &here).map(|(plan, _)| plan)
    };
    let pipeline = PipelineTask {
        plan,
        mode: PipelineStartMode::Start(selection),
        reload: &reload,
        notes: repairs.notes,
        gateway: PrivateGatewayMode::from_flag(args.no_gateway),
    };
    let done = run_supervision::run_pipeline(session, config, pipeline, args.verbosity());
    let done = done.map_err(|error| match error.downcast_ref() {
        Some(RunError::NoOutput { .. }) => refusal(
            error.to_string(),
            "run the whole pipeline once, or start at an earlier role",
        ),
        _ => error,
    })?;
    report_pipeline_result(&done, args.json, session, out)
}

/// Returns the roles to run, and those whose outputs are reused from an earlier run.
fn selected_roles(
    args: &RunArgs,
    config: &Config,
    here: &Path,
) -> Result<(PipelineSpec, PartialRunSelection)> {
    let mut plan = pipeline_from_config::build_plan(config, &args.options(), here)?;
    let selection = match (&args.only, &args.from) {
        (Some(role), _) => PartialRunSelection::only(&mut plan, check_role(role, config)?),
        (_, Some(role)) => PartialRunSelection::from(&mut plan, check_role(role, config)?),
        _ => PartialRunSelection::default(),
    };
    pipeline_from_config::check_task(&plan)?;
    Ok((plan, selection))
}

/// Returns the role if it exists.
fn check_role<'a>(role: &'a str, config: &Config) -> Result<&'a str> {
    if config.role(role).is_some() {
        return Ok(role);
    }
    let ids: Vec<_> = config.roles().iter().map(|role| role.id.as_str()).collect();
    Err(error_with_hint(
        format!("unknown role `{role}`"),
        format!("available roles: {}", ids.join(", ")),
    ))
}
