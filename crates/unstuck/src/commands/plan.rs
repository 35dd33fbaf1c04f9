//! `unstuck plan`: ranks the recovery strategies for a failure.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::recovery_plan::{
    DEFAULT_SCRATCH_DIR, PlannedStrategy, RecoveryPlanRequest, TaskType, failure_directory, plan,
};
use unstuck_core::{Classifier, ClockReading, Diagnosis, Failure};
use unstuck_files::DirHandle;

use super::classify;
use super::failure_input::{self, FailureArgs};
use crate::config::Config;
use crate::environment_variables;
use crate::output::{BOLD, DIM, Output};

/// The number of names that are read from a directory.
const MAX_LISTED_NAMES: usize = 10_000;

/// Show how to recover from a failure: the most promising strategy first, human input last
///
/// A plan is only a proposal: unstuck executes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck plan --command 'git clone https://github.com/u/r' --exit-code 127 err.txt
  unstuck plan --command 'cat confg.yaml' --exit-code 1 --forbid sudo,install --json < err.txt
  unstuck plan --agent claude --exit-code 124 --timed-out --stdout out.txt
  unstuck plan --jsonl --tools Bash,Read,Write < cases.jsonl")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    failure: FailureArgs,

    #[command(flatten)]
    limits: LimitArgs,

    /// Print the plan as a JSON array, the best strategy first
    #[arg(long)]
    json: bool,

    /// Read one JSON case per line from FILE or standard input, and print one plan per line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

/// Tools and restrictions of the agent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tools and restrictions")]
struct LimitArgs {
    /// Tools that the agent has, such as Bash,Read,Write [default: all common tools]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    tools: Option<Vec<String>>,

    /// Programs that the plan may use [default: the programs on PATH]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    programs: Option<Vec<String>>,

    /// Exclude strategies by id, by risk (sudo, install, delete, network, write), or by a word in their commands
    #[arg(long, value_delimiter = ',', value_name = "WORD,…")]
    forbid: Vec<String>,

    /// Allow a risk that is excluded by default: sudo
    #[arg(long, value_delimiter = ',', value_name = "WORD,…")]
    allow: Vec<String>,

    /// Directory in which the agent may work
    #[arg(long, value_name = "DIR")]
    root: Option<String>,

    /// Directory to which the agent may always write
    #[arg(long, value_name = "DIR", default_value = DEFAULT_SCRATCH_DIR)]
    sandbox: String,

    /// Arguments of the failed tool call, as JSON
    #[arg(long, value_name = "JSON", value_parser = |text: &str| serde_json::from_str::<Value>(text))]
    args: Option<Value>,

    /// Task mode: exploratory prefers strategies that change nothing
    #[arg(long, value_enum)]
    task: Option<TaskMode>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TaskMode {
    Exploratory,
    Implementation,
}

pub(crate) fn run(args: &PlanArgs, config: &Config, out: &mut Output) -> Result<()> {
    let planner = PlanBuilder::new(config, &args.limits)?;
    if args.jsonl {
        return failure_input::answer_each_case(args.failure.file.as_deref(), out, |case, now| {
            let (diagnosis, plan) = planner.plan(&case.into_failure(), &now);
            Ok(json!({ "kind": diagnosis.kind, "plan": plan }))
        });
    }
    let (failure, now) = args.failure.read()?;
    let (diagnosis, plan) = planner.plan(&failure, &now);
    if args.json {
        return out.write_json(&plan);
    }
    classify::show(&diagnosis, planner.classifier.knowledge(), out)?;
    show(&plan, &planner.playbook, out)
}

struct PlanBuilder<'a> {
    classifier: &'a Classifier,
    playbook: RecoveryKnowledge,
    programs: Vec<String>,
    limits: &'a LimitArgs,
}

impl<'a> PlanBuilder<'a> {
    fn new(config: &'a Config, limits: &'a LimitArgs) -> Result<Self> {
        let classifier = config.classifier()?;
        let playbook = RecoveryKnowledge::new(classifier.knowledge())
            .context("invalid kinds or strategies in the configuration")?;
        let programs = limits
            .programs
            .clone()
            .unwrap_or_else(|| environment_variables::program_names().into_iter().collect());
        Ok(Self {
            classifier,
            playbook,
            programs,
            limits,
        })
    }

    fn plan(&self, failure: &Failure, now: &ClockReading) -> (Diagnosis, Vec<PlannedStrategy>) {
        let diagnosis = self.classifier.diagnose(failure, now);
        let mut request = RecoveryPlanRequest::new(&self.playbook, failure, &diagnosis);
        request.args = self.limits.args.as_ref();
        request.tools.clone_from(&self.limits.tools);
        request.programs = Some(self.programs.clone());
        request.forbid.clone_from(&self.limits.forbid);
        request.allow.clone_from(&self.limits.allow);
        request.root.clone_from(&self.limits.root);
        request.sandbox.clone_from(&self.limits.sandbox);
        request.task = self.limits.task.map(|task| match task {
            TaskMode::Exploratory => TaskType::Exploratory,
            TaskMode::Implementation => TaskType::Implementation,
        });
        request.listing = failure_directory(&request)
            .map(|folder| program_names(Path::new(&folder)))
            .unwrap_or_default();
        let plan = plan(&request);
        (diagnosis, plan)
    }
}

/// Returns the file names in a directory that a failure names; none if it cannot be read, or its path contains a link.
fn program_names(folder: &Path) -> Vec<String> {
    let entries = DirHandle::open_resolved(folder)
        .and_then(|folder| folder.first_entries(Path::new("."), MAX_LISTED_NAMES))
        .unwrap_or_default();
    let mut names: Vec<String> = entries
        .into_iter()
        .filter_map(|entry| entry.name.into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

fn show(plan: &[PlannedStrategy], playbook: &RecoveryKnowledge, out: &mut Output) -> Result<()> {
    if plan.is_empty() {
        writeln!(out, "\nNothing to recover from.")?;
    }
    for one in plan {
        let title = playbook
            .strategy(&one.strategy)
            .map_or(one.strategy.as_str(), |strategy| &strategy.title);
        let turns = if one.estimated_iterations == 1 {
            "turn"
        } else {
            "turns"
        };
        writeln!(
            out,
            "\n{BOLD}{}. {title}{BOLD:#} {DIM}({}, confidence {:.0}%, about {} {turns}){DIM:#}",
            one.priority,
            one.strategy,
            one.confidence * 100.0,
            one.estimated_iterations
        )?;
        for step in &one.steps {
            writeln!(out, "   {}", step.action)?;
            writeln!(
                out,
                "     {DIM}{}{DIM:#} {}",
                step.tool,
                args_text(&step.args)
            )?;
        }
    }
    Ok(())
}

/// Renders the arguments of a step: a single string as is, anything else as JSON.
fn args_text(args: &Value) -> String {
    let texts = args
        .as_object()
        .map(|fields| fields.values().collect::<Vec<_>>())
        .unwrap_or_default();
    match texts.as_slice() {
        [Value::String(text)] => text.replace('\n', "\n     "),
        [] => String::new(),
        _ => args.to_string(),
    }
}
