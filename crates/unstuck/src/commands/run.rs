//! `unstuck run`: runs the roles of a project, and keeps them going.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::duration;
use unstuck_core::settings::ProjectSettings;
use unstuck_run::drive::RunError;
use unstuck_run::drive::pipeline::{Plan, Selection};

use super::ended::tell_with_roles;
use super::resume;
use crate::config::Config;
use crate::gateway::Wish;
use crate::output::Output;
use crate::pipeline_plan::{self, Wanted};
use crate::place::project_of;
use crate::project_changes::{self, OnChanges};
use crate::repairs::{self, Repair};
use crate::report::{hinted, refused};
use crate::session::Session;
use crate::supervise::{self, Conducted, Pipelined, Told};

/// Run the roles of unstuck.toml: each builds on what it needs, and each is kept going
///
/// Roles that do not depend on each other run side by side. With a loop they run again and again until the work is
/// done. What fails goes through the same recovery as with `unstuck exec`. Outputs are in .unstuck/runs/RUN/roles.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck run --task \"add a search field to the shop\"
  unstuck run --config review.toml --only reviewer
  unstuck run --from tester                  (what comes before is taken from an earlier run)
  unstuck run --resume-from-failure          (the same as `unstuck resume`)

A first unstuck.toml:
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
  0    done, also after recovery
  1    a role failed, or there is nothing to resume
  2    an error of unstuck itself, or of the configuration
  3    a person is needed; `unstuck resume` goes on
  130  interrupted; `unstuck resume` goes on")]
pub(crate) struct RunArgs {
    /// What is to be done; stands for {{ task }} in prompts
    #[arg(long, short, value_name = "TEXT")]
    task: Option<String>,

    /// Run only this role; what it needs is taken from an earlier run
    #[arg(long, value_name = "ROLE", conflicts_with = "from")]
    only: Option<String>,

    /// Begin at this role; what comes before is taken from an earlier run
    #[arg(long, value_name = "ROLE")]
    from: Option<String>,

    /// How many roles may run side by side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    parallel: Option<u32>,

    /// The most iterations of the loop
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_iterations: Option<u32>,

    /// Stay when a person is needed, and go on when they have seen to it
    #[arg(long)]
    wait: bool,

    /// How long what passes by itself is tried again without progress, such as 8h [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    keep_trying: Option<Duration>,

    /// Repair the environment: auto runs what your `[recovery]` allows, ask asks about each, off repairs nothing
    /// [default: auto where the configuration has a `[recovery]`, else off]
    #[arg(long, value_name = "WHEN", value_enum)]
    repair: Option<Repair>,

    /// Do not put a gateway between the agents and their APIs
    #[arg(long)]
    no_gateway: bool,

    /// Take up the newest run of this project that is not done, and reuse what succeeded
    #[arg(long, conflicts_with_all = ["only", "from"])]
    resume_from_failure: bool,

    /// With --resume-from-failure: go on although the project's configuration, or what outputs were made from, was changed
    #[arg(long, requires = "resume_from_failure")]
    accept_changes: bool,

    /// With --resume-from-failure: run this role again, with all that depend on it; may be given several times
    #[arg(long, value_name = "ROLE", requires = "resume_from_failure")]
    restart: Vec<String>,

    /// Say nothing but what is wrong with unstuck itself
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,

    /// Also pass on what the agents write, each line with the name of its role
    #[arg(long, short)]
    verbose: bool,

    /// Print one JSON object about the run as the last line
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// Whether a run is resumed.
    pub(crate) fn resumes(&self) -> bool {
        self.resume_from_failure
    }

    fn told(&self) -> Told {
        match (self.quiet, self.verbose) {
            (true, _) => Told::Nothing,
            (_, true) => Told::Agents,
            _ => Told::All,
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            task: self.task.clone(),
            parallel: self.parallel,
            max_iterations: self.max_iterations,
            wait: self.wait,
            keep_trying: self.keep_trying,
            repair: Repair::wish(self.repair),
        }
    }
}

pub(crate) fn run(
    args: &RunArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if args.resume_from_failure {
        let again = resume::Taken {
            accept_changes: args.accept_changes,
            on_changes: OnChanges::of_flags(args.accept_changes, false),
            restart: &args.restart,
            wanted: args.wanted(),
            told: args.told(),
            json: args.json,
            gateway: Wish::of_flag(args.no_gateway),
        };
        return resume::newest_pipeline(&again, config, session, out);
    }
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let repairs = repairs::allowed(
        config,
        &project_of(&here),
        Repair::wish(args.repair),
        !args.quiet,
    )?;
    let (plan, selection) = selected(args, config, &here)?;
    let reload = |accepted: Option<&ProjectSettings>| {
        let config = project_changes::load(&here, session.sources(), accepted)?;
        selected(args, &config, &here).map(|(plan, _)| plan)
    };
    let pipeline = Pipelined {
        plan,
        how: Conducted::Start(selection),
        reload: &reload,
        notes: repairs.notes,
        gateway: Wish::of_flag(args.no_gateway),
    };
    let done = supervise::conduct(session, config, pipeline, args.told());
    let done = done.map_err(|error| match error.downcast_ref() {
        Some(RunError::NoOutput { .. }) => refused(
            error.to_string(),
            "run the whole pipeline once, or begin at an earlier role",
        ),
        _ => error,
    })?;
    tell_with_roles(&done, args.json, session, out)
}

/// The roles that are to be run, and those whose outputs come from an earlier run.
fn selected(args: &RunArgs, config: &Config, here: &Path) -> Result<(Plan, Selection)> {
    let mut plan = pipeline_plan::plan(config, &args.wanted(), here)?;
    let selection = match (&args.only, &args.from) {
        (Some(role), _) => Selection::only(&mut plan, known(role, config)?),
        (_, Some(role)) => Selection::from(&mut plan, known(role, config)?),
        _ => Selection::default(),
    };
    pipeline_plan::has_task(&plan)?;
    Ok((plan, selection))
}

/// A role that there is.
fn known<'a>(role: &'a str, config: &Config) -> Result<&'a str> {
    if config.role(role).is_some() {
        return Ok(role);
    }
    let ids: Vec<_> = config.roles().iter().map(|role| role.id.as_str()).collect();
    Err(hinted(
        format!("there is no role `{role}`"),
        format!("there are {}", ids.join(", ")),
    ))
}
