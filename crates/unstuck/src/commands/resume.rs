//! `unstuck resume`: resumes an interrupted, crashed or blocked run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use unstuck_core::duration;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::RecordedPipelineSettings;
use unstuck_core::pipeline::{ROLE_REMOVED, RoleConfigChange};
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;
use unstuck_core::views::{RunStatus, RunSummary};
use unstuck_run::runner::pipeline::{PipelineResumeOptions, PipelineSpec};
use unstuck_run::runner::{RunAttemptOptions, RunError, RunResult, why_not_resumable};
use unstuck_store::{EscalationFilter, RunFilter};

use super::resume_all;
use super::run_result::{report_pipeline_result, report_result};
use crate::choice_prompt::ChoicePrompt;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::effective_repair_settings;
use crate::error_report::refusal;
use crate::gateway::PrivateGatewayMode;
use crate::output::Output;
use crate::pipeline_from_config::{self, PipelineOptions};
use crate::project_lookup::current_project;
use crate::project_setting_changes::{self, OnSettingChanges};
use crate::run_history::RunHistory;
use crate::run_supervision::{
    self, CommandRunToResume, OriginalStart, PipelineStartMode, PipelineTask, SupervisedRunEnd,
    Verbosity, state_dir,
};
use crate::run_title::{is_gateway_client, run_title};
use crate::sanitized_text::truncate;
use crate::{async_runtime, clock, completion_candidates, escalation_answers};

/// Statuses that can be resumed; failed runs only if they are pipelines.
const UNFINISHED: [RunStatus; 5] = [
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::AwaitingHuman,
    RunStatus::Interrupted,
    RunStatus::Failed,
];

/// Maximum number of runs that are tried if none is named.
const MAX_CANDIDATES: usize = 30;

/// Resume an interrupted, crashed or blocked run
///
/// Continues a wait that is not over; if the wait is over, retries immediately. Repeats an interrupted attempt. A
/// pipeline reuses successful outputs and continues at the failed role.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck resume          (the unfinished run of this project;
                           agents and pipelines before plain commands)
  unstuck resume k3v9
  unstuck resume --all    (all runs of this project that crashed or were
                           ended by a shutdown, in the background; with
                           --everywhere: of all projects)
  unstuck resume --restart planner    (re-run it and all roles that depend on it)

Exit codes: those of `unstuck exec` for the resumed run; 1 nothing to resume, or several runs match.")]
pub(crate) struct ResumeArgs {
    /// Id prefix of the run [default: the only unfinished run of this project]
    #[arg(value_name = "RUN", add = completion_candidates::runs())]
    run: Option<String>,

    /// Resume, in the background, every run of this project that crashed or that a shutdown ended
    #[arg(long, conflicts_with_all = ["run", "restart", "accept_changes", "no_gateway", "json"])]
    all: bool,

    /// With --all: resume the runs of all projects
    #[arg(long, requires = "all")]
    everywhere: bool,

    /// Re-run this role even if it is done, and all roles that depend on it (repeatable)
    #[arg(long, value_name = "ROLE")]
    restart: Vec<String>,

    /// Continue even if the project's configuration or the inputs of finished roles have changed
    #[arg(long)]
    accept_changes: bool,

    /// Use the project's configuration as of the start of the run, and ask about later changes
    #[arg(long, hide = true, conflicts_with = "accept_changes")]
    hold_changes: bool,

    /// Retry transient failures without progress for this long from now on, such as 8h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    keep_trying: Option<Duration>,

    /// Do not run a gateway between the agents and their APIs
    #[arg(long)]
    no_gateway: bool,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,

    /// Print a JSON summary of the run as the last line
    #[arg(long)]
    json: bool,
}

/// Options for resuming a run.
pub(crate) struct ResumeRequest<'a> {
    /// If set, outputs are reused even if their inputs have changed.
    pub(crate) accept_changes: bool,
    /// Handling of changes in the project's configuration.
    pub(crate) on_changes: OnSettingChanges,
    pub(crate) restart: &'a [String],
    pub(crate) options: PipelineOptions,
    pub(crate) verbosity: Verbosity,
    pub(crate) json: bool,
    pub(crate) gateway: PrivateGatewayMode,
}

pub(crate) fn run(
    args: &ResumeArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if args.all {
        return resume_all::run(args.everywhere, args.quiet, session, out);
    }
    let candidates = async_runtime::block_on(find(args, session))?;
    let taken = ResumeRequest {
        accept_changes: args.accept_changes,
        on_changes: OnSettingChanges::from_flags(args.accept_changes, args.hold_changes),
        restart: &args.restart,
        options: PipelineOptions {
            keep_trying: args.keep_trying,
            ..PipelineOptions::default()
        },
        verbosity: if args.quiet {
            Verbosity::Quiet
        } else {
            Verbosity::All
        },
        json: args.json,
        gateway: PrivateGatewayMode::from_flag(args.no_gateway),
    };
    resume_first_possible(candidates, &taken, session, out)
}

/// Resumes the newest unfinished pipeline of this project.
pub(crate) fn resume_newest_pipeline(
    taken: &ResumeRequest<'_>,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let candidates = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.newest(&UNFINISHED, MAX_CANDIDATES).await
    })?;
    let is_pipeline = |run: &RunSummary| run.roles.is_some();
    let candidates = candidates.into_iter().filter(is_pipeline).collect();
    resume_first_possible(candidates, taken, session, out)
}

/// Resumes the first run that can be resumed.
pub(crate) fn resume_first_possible(
    candidates: Vec<RunSummary>,
    taken: &ResumeRequest<'_>,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let mut candidates = candidates.into_iter().peekable();
    let mut first_refusal = None;
    while let Some(run) = candidates.next() {
        match resume_run(&run, taken, session, out) {
            // A run that cannot be resumed does not block the others.
            Err(error) if is_refusal(&error) && candidates.peek().is_some() => {
                first_refusal.get_or_insert((error, run));
            }
            Err(error) => {
                let (error, run) = first_refusal.unwrap_or((error, run));
                return Err(with_hint(error, &run));
            }
            done => return done,
        }
    }
    Err(refusal(
        "nothing to resume in this project",
        "`unstuck runs --status crashed,interrupted,awaiting_human` lists unfinished runs of all projects",
    ))
}

fn resume_run(
    run: &RunSummary,
    taken: &ResumeRequest<'_>,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let done = match run.roles {
        Some(_) => resume_pipeline(run, taken, session).map(SupervisedRunEnd::from),
        None => resume_command(run, taken, session),
    };
    match done {
        Err(error)
            if is_supervised_elsewhere(&error)
                && async_runtime::block_on(has_open_escalation(session, run))? =>
        {
            resolve_escalations(session, run)?;
            writeln!(out, "run {} continues in the waiting process", run.id)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
        Ok(done) if run.roles.is_some() => {
            report_pipeline_result(&done.finished, taken.json, session, out)
        }
        Ok(done) => report_result(&done, &taken.json.into(), out),
    }
}

/// Resumes a single command with the project's configuration as of its start.
fn resume_command(
    run: &RunSummary,
    taken: &ResumeRequest<'_>,
    session: &CommandContext<'_>,
) -> Result<SupervisedRunEnd> {
    let (events, options) = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let timeline = history.timeline(&run.id).await?;
        let spec = timeline.run.sole_session();
        let options =
            spec.map(|spec| serde_json::from_value::<RunAttemptOptions>(spec.options.clone()));
        let options = options.and_then(Result::ok).unwrap_or_default();
        Ok((history.events(&run.id).await?, options))
    })?;
    let config = &project_setting_changes::load_for_resume(
        run,
        &events,
        session.sources(),
        &taken.on_changes,
        session,
    )?;
    let project = PathBuf::from(&run.project);
    let mut repairs =
        effective_repair_settings::repair_setup_unattended(config, &project, options.repair)?;
    let held = project_setting_changes::change_lines(config.unapproved_changes());
    if !held.is_empty() {
        repairs.notes.push(format!(
            "the project's configuration has changed since the run started; this run ignores the changes:\n{}",
            held.join("\n")
        ));
    }
    let before = OriginalStart {
        repairs,
        project,
        tty: options.tty,
    };
    let resumed = CommandRunToResume::new(&run.id, taken.options.keep_trying, config);
    run_supervision::resume_command(
        session,
        config,
        resumed,
        taken.verbosity,
        before,
        taken.gateway,
    )
}

/// Resumes a pipeline with the configuration that it was started with, where it still applies.
fn resume_pipeline(
    run: &RunSummary,
    taken: &ResumeRequest<'_>,
    session: &CommandContext<'_>,
) -> Result<RunResult> {
    let (timeline, events) = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let timeline = history.timeline(&run.id).await?;
        Ok((timeline, history.events(&run.id).await?))
    })?;
    let then = timeline.run.pipeline();
    let path = then.and_then(|then| then.config_path.as_deref());
    let project = Path::new(&run.project);
    let sources = pipeline_from_config::sources_for_run(path, session.sources())?;
    let config = project_setting_changes::load_for_resume(
        run,
        &events,
        sources,
        &taken.on_changes,
        session,
    )?;
    let wanted = PipelineOptions {
        task: task(taken, then, &config),
        ..taken.options.clone()
    };
    let left_out = then.map_or(&[][..], |then| &then.excluded_roles);
    let planned = |config: &Config| -> Result<PipelineSpec> {
        let mut plan = pipeline_from_config::build_plan(config, &wanted, project)?;
        // A run of selected roles keeps its selection; new roles are added to it.
        plan.exclude_roles(|id| left_out.iter().any(|one| one == id));
        pipeline_from_config::check_task(&plan)?;
        Ok(plan)
    };
    let reload = |accepted: Option<&ProjectSettingsSnapshot>| {
        let sources = pipeline_from_config::sources_for_run(path, session.sources())?;
        planned(&project_setting_changes::load_for_run(
            project, sources, accepted,
        )?)
    };
    let again = PipelineResumeOptions {
        restart: taken.restart.to_vec(),
        accept_changes: taken.accept_changes,
    };
    let pipeline = PipelineTask {
        plan: planned(&config)?,
        mode: PipelineStartMode::Resume(run.id.clone(), again),
        reload: &reload,
        notes: Vec::new(),
        gateway: taken.gateway,
    };
    run_supervision::run_pipeline(session, &config, pipeline, taken.verbosity)
}

/// Returns the task: from the command line, from the original start, or from the configuration.
fn task(
    taken: &ResumeRequest<'_>,
    then: Option<&RecordedPipelineSettings>,
    config: &Config,
) -> Option<String> {
    let said_then = then.filter(|then| then.command.iter().any(|word| word == "--task"));
    let said_then = said_then.map(|then| then.task.clone());
    let said_now = taken.options.task.clone();
    let known = || then.map(|then| then.task.clone());
    said_now
        .or(said_then)
        .or_else(|| config.run().task.clone())
        .or_else(known)
}

/// Returns the named run, or the candidates of this project.
async fn find(args: &ResumeArgs, session: &CommandContext<'_>) -> Result<Vec<RunSummary>> {
    let history = RunHistory::open(session.store).await?;
    if let Some(letters) = &args.run {
        return Ok(vec![history.find(Some(letters)).await?]);
    }
    let filter = RunFilter {
        project: Some(current_project()),
        status: vec![
            RunStatus::Crashed,
            RunStatus::Interrupted,
            RunStatus::AwaitingHuman,
            RunStatus::Failed,
        ],
        limit: Some(MAX_CANDIDATES),
        ..RunFilter::default()
    };
    let listed = history.run_entries(&filter, clock::now().at).await?;
    let runs = listed.into_iter().map(|one| one.run);
    // A gateway client's session can only be continued by the client.
    let runs: Vec<_> = runs.filter(|run| !is_gateway_client(run)).collect();
    let mut left = Vec::new();
    let mut refused_run = None;
    for run in runs {
        // Only pipelines can be resumed after a failure; a failed single command is final.
        if run.status == RunStatus::Failed {
            continue;
        }
        match why_not_resumable(&history.events(&run.id).await?, &state_dir(session.store)) {
            None => left.push(run),
            Some(_) => refused_run = refused_run.or(Some(run)),
        }
    }
    let is_agent = |run: &RunSummary| run.agent.is_some() || run.roles.is_some();
    if left.iter().any(is_agent) {
        left.retain(is_agent);
    }
    if left.is_empty() {
        let failed = failed_pipeline(&history).await?;
        // If the run is active, the command reports that.
        let active = [RunStatus::Running, RunStatus::Waiting];
        let active = history.newest(&active, 1).await?.pop();
        return Ok(failed.or(refused_run).or(active).into_iter().collect());
    }
    if left.len() > 1 {
        let candidates = ChoicePrompt {
            what: "unfinished runs in this project",
            lines: left.iter().map(candidate_line).collect(),
            hint: "specify one: `unstuck resume RUN`; `unstuck abort RUN` aborts one".to_owned(),
        };
        left = vec![left.swap_remove(candidates.choose()?)];
    }
    Ok(left)
}

/// Returns the newest pipeline of this project if it failed.
async fn failed_pipeline(history: &RunHistory) -> Result<Option<RunSummary>> {
    let filter = RunFilter {
        project: Some(current_project()),
        status: vec![RunStatus::Failed],
        limit: Some(MAX_CANDIDATES),
        ..RunFilter::default()
    };
    let mut failed = history.runs(&filter).await?.into_iter();
    Ok(failed.find(|run| run.roles.is_some()))
}

/// Renders a run on one line: its id, state and command.
fn candidate_line(run: &RunSummary) -> String {
    let ago = clock::format_age(run.updated, clock::now().at);
    let what = truncate(&run_title(run), 60);
    format!("{}  {}  {ago}  {what}", run.id.short(), run.status)
}

fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::NotResumable { .. }))
}

/// True if another process supervises the run.
fn is_supervised_elsewhere(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::AlreadyActive { .. }))
}

/// True if the run or one of its roles has an open escalation.
async fn has_open_escalation(session: &CommandContext<'_>, run: &RunSummary) -> Result<bool> {
    let history = RunHistory::open(session.store).await?;
    let now = history.timeline(&run.id).await?;
    let mut standings = now.sessions.iter().map(|session| session.status);
    let asks = |status: RunStatus| status == RunStatus::AwaitingHuman;
    Ok(asks(now.summary.status) || standings.any(asks))
}

/// Resolves every escalation of a run as fixed manually.
fn resolve_escalations(session: &CommandContext<'_>, run: &RunSummary) -> Result<()> {
    let filter = EscalationFilter {
        run: Some(run.id.clone()),
        ..EscalationFilter::default()
    };
    let open = escalation_answers::open_escalations(&filter, session)?.into_iter();
    // An escalation that does not block the run needs no answer.
    let open = open.filter(|one| !one.request.is_about_settings());
    // A budget is raised only by an answer to its own escalation.
    let (money, others): (Vec<_>, Vec<_>) = open.partition(|one| one.request.is_about_budget());
    for question in &others {
        escalation_answers::answer_as_user(question, EscalationAnswer::Resolve, "", session)?;
    }
    match money.into_iter().next().filter(|_| others.is_empty()) {
        None => Ok(()),
        Some(question) => Err(RunError::BudgetApprovalPending {
            run: run.id.clone(),
            question: question.request.id,
            reason: question.request.reason,
        }
        .into()),
    }
}

/// Lists the changed inputs line by line, and the options.
fn inputs_changed_error(run: &RunSummary, changes: &[RoleConfigChange]) -> anyhow::Error {
    let mut lines = vec![format!(
        "cannot resume run {}: inputs of completed roles have changed",
        run.id
    )];
    let mut roles = Vec::new();
    for change in changes {
        let who = change.role.as_deref().unwrap_or("all roles");
        lines.extend(
            change
                .descriptions
                .iter()
                .map(|what| format!("  {who}: {what}")),
        );
        let is_gone = change.descriptions.iter().any(|what| what == ROLE_REMOVED);
        roles.extend(change.role.as_deref().filter(|_| !is_gone));
    }
    let restart: Vec<_> = roles
        .iter()
        .map(|role| format!("--restart {role}"))
        .collect();
    let restart = if restart.is_empty() {
        "`unstuck run` starts a new run".to_owned()
    } else {
        format!("{} re-runs them", restart.join(" "))
    };
    refusal(
        lines.join("\n"),
        format!("--accept-changes reuses their outputs anyway; {restart}"),
    )
}

/// Adds a hint to a refusal.
fn with_hint(error: anyhow::Error, run: &RunSummary) -> anyhow::Error {
    let short = run.id.short();
    match error.downcast_ref::<RunError>() {
        Some(RunError::NotResumable { .. }) => refusal(
            error.to_string(),
            format!(
                "`unstuck show {short}` shows its result; `unstuck exec` or `unstuck run` starts a new run"
            ),
        ),
        Some(RunError::InputsChanged { changes, .. }) => inputs_changed_error(run, changes),
        Some(RunError::BudgetApprovalPending { question, .. }) => refusal(
            error.to_string(),
            format!(
                "`unstuck approve {question}` raises the budget; `unstuck abort {question}` aborts the run"
            ),
        ),
        Some(RunError::AlreadyActive {
            pid, host, seen, ..
        }) => refusal(
            format!(
                "run {} is already active (pid {pid} on {host}, last seen {})",
                run.id,
                clock::format_time(*seen)
            ),
            format!("`unstuck logs -f {short}` follows its output"),
        ),
        _ => error,
    }
}
