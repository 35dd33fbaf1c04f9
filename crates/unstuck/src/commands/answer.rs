//! `unstuck approve`, `reject`, `resolve`, `skip`, `retry`, `escalate`, `abort`: answers to escalations.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use unstuck_core::command_policy::sanitize;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::views::{RunProjection, RunStatus, RunSummary};
use unstuck_store::{EscalationFilter, EscalationRow, RunFilter};

use super::auto_approve_writer;
use super::preview::CommandProposal;
use super::resume::{self, ResumeRequest};
use crate::command_context::CommandContext;
use crate::escalation_answers::{self, AnswerEffect, EscalationSelector};
use crate::gateway::PrivateGatewayMode;
use crate::output::{BOLD, DIM, Output};
use crate::pipeline_from_config::PipelineOptions;
use crate::project_lookup::{abbreviate_home, current_project, project_at};
use crate::project_setting_changes::OnSettingChanges;
use crate::run_history::RunHistory;
use crate::run_supervision::Verbosity;
use crate::run_title::run_title;
use crate::sanitized_text::one_line;
use crate::{async_runtime, clock, completion_candidates};

/// Returns the end of the help of a command that answers a request: its examples and exit codes.
macro_rules! answer_help {
    ($examples:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\n\nExit codes: those of `unstuck exec` for the resumed run; 0 if the answer ended the run; 1 request not found, ambiguous or already answered, or inside a supervised agent."
        )
    };
}

/// Examples and exit codes of `unstuck reject`.
pub(crate) const REJECT_HELP: &str = answer_help!(
    "  unstuck reject                 (the open request of this project)
  unstuck reject k3v9 --note \"wrong directory\""
);

/// Examples and exit codes of `unstuck resolve`.
pub(crate) const RESOLVE_HELP: &str = answer_help!(
    "  unstuck resolve                (the open request of this project)
  unstuck resolve --last --note \"logged in again\""
);

/// Examples and exit codes of `unstuck skip`.
pub(crate) const SKIP_HELP: &str = answer_help!(
    "  unstuck skip                   (the open request of this project)
  unstuck skip k3v9 --note \"not needed\""
);

/// Examples and exit codes of `unstuck approve-recovery`.
pub(crate) const APPROVE_RECOVERY_HELP: &str =
    answer_help!("  unstuck approve-recovery --loop k3v9");

/// Examples and exit codes of `unstuck reject-recovery`.
pub(crate) const REJECT_RECOVERY_HELP: &str =
    answer_help!("  unstuck reject-recovery --loop k3v9 --note \"wrong directory\"");

/// Examples and exit codes of `unstuck resolve-recovery`.
pub(crate) const RESOLVE_RECOVERY_HELP: &str =
    answer_help!("  unstuck resolve-recovery --loop k3v9 --note \"logged in again\"");

/// Approve the proposed action and continue
///
/// Executes exactly what unstuck has shown. A repair runs once, in the sandbox; then unstuck retries the failed
/// command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck approve                 (the open request of this project)
  unstuck approve k3v9
  unstuck approve k3v9 --always   (also adds the repair to auto_approve of the
                                   project's unstuck.toml)

Exit codes: those of `unstuck exec` for the resumed run; 1 request not found, ambiguous or already answered, or inside a supervised agent.")]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    about: EscalationArgs,

    /// Add this exact command to auto_approve of the project's configuration
    #[arg(long)]
    always: bool,
}

/// Answer a pending request
#[derive(Debug, Clone, Args)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    about: EscalationArgs,
}

/// Abort a run that waits for you, was interrupted or crashed
///
/// Ends the run permanently and executes nothing. To stop an active run, use `unstuck stop`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck abort                   (the waiting run of this project)
  unstuck abort k3v9 --note \"no longer needed\"
  unstuck abort --all             (every waiting run of this project)
  unstuck abort --all --project ~/shop

Exit codes: 0 aborted; 1 nothing to abort, ambiguous id, run active or already ended, or inside a supervised agent.")]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    about: EscalationArgs,

    /// Abort every run of the project that waits for you
    #[arg(long, conflicts_with_all = ["id", "last"])]
    all: bool,

    /// Project for --all [default: the current one]
    #[arg(long, value_name = "DIR", requires = "all")]
    project: Option<PathBuf>,
}

impl AnswerArgs {
    /// Returns the given id.
    pub(crate) fn id(&self) -> Option<&str> {
        self.about.id.as_deref()
    }
}

// The commands that use these options have their own descriptions.
#[derive(Debug, Args)]
pub(crate) struct RecoveryAnswerArgs {
    /// Id prefix of the waiting run
    #[arg(long = "loop", value_name = "ID", add = completion_candidates::runs())]
    run: Option<String>,

    /// Reason, recorded in the history
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    note: String,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,
}

impl From<&RecoveryAnswerArgs> for AnswerArgs {
    fn from(args: &RecoveryAnswerArgs) -> Self {
        Self {
            about: EscalationArgs {
                id: args.run.clone(),
                last: args.run.is_none(),
                note: args.note.clone(),
                quiet: args.quiet,
            },
        }
    }
}

#[derive(Debug, Clone, Args)]
struct EscalationArgs {
    /// Id prefix of the request or its run [default: the only open request of this project]
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), add = completion_candidates::runs())]
    id: Option<String>,

    /// Answer the newest request of this project
    #[arg(long, conflicts_with = "id")]
    last: bool,

    /// Reason, recorded in the history
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    note: String,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn approve(
    args: &ApproveArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let given = AnswerCommand {
        answer: EscalationAnswer::Approve,
        always: args.always,
        about: &args.about,
    };
    given.run(session, out)
}

pub(crate) fn answer(
    answer: EscalationAnswer,
    args: &AnswerArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let given = AnswerCommand {
        answer,
        always: false,
        about: &args.about,
    };
    given.run(session, out)
}

/// An answer command with its arguments.
struct AnswerCommand<'a> {
    answer: EscalationAnswer,
    always: bool,
    about: &'a EscalationArgs,
}

impl AnswerCommand<'_> {
    fn run(&self, session: &CommandContext<'_>, out: &mut Output) -> Result<ExitCode> {
        let (answer, about) = (self.answer, self.about);
        let question = escalation_answers::find_escalation(about.selector(), answer, session)?;
        let given = escalation_answers::answer_as_user(&question, answer, &about.note, session)?;
        if !about.quiet {
            show_answer(&question, answer, &given, out)?;
        }
        if self.always {
            let said = auto_approve_writer::add_to_auto_approve(
                Path::new(&question.project),
                &question.request,
                &about.note,
            )?;
            writeln!(out, "{said}")?;
        }
        // Flush first: the resumed run may write directly, and take long.
        out.flush()?;
        match given {
            AnswerEffect::Recorded | AnswerEffect::Delivered | AnswerEffect::Ended(_) => {
                Ok(ExitCode::SUCCESS)
            }
            AnswerEffect::NeedsResume => resume_run(&question, about.quiet, session, out),
        }
    }
}

impl EscalationArgs {
    fn selector(&self) -> EscalationSelector<'_> {
        match &self.id {
            Some(id) => EscalationSelector::Id(id),
            None if self.last => EscalationSelector::Newest,
            None => EscalationSelector::Only,
        }
    }
}

/// Prints the recorded answer and its effect.
fn show_answer(
    question: &EscalationRow,
    answer: EscalationAnswer,
    given: &AnswerEffect,
    out: &mut Output,
) -> Result<()> {
    let shown = &question.request.details;
    let run = question.run.short();
    if let AnswerEffect::Ended(reason) = given {
        let doing = one_line(&shown.activity, 80);
        writeln!(out, "run {run} has ended: {} ({doing})", sanitize(reason))?;
        return Ok(());
    }
    if let Some(command) = &shown.command {
        writeln!(out, "{BOLD}{}{BOLD:#}", sanitize(command))?;
    }
    let choice = shown.options.iter().find(|one| one.answer == answer);
    let does = choice.map_or_else(String::new, |one| format!(": {}", sanitize(&one.effect)));
    let said = answer.past_tense();
    writeln!(out, "{DIM}{} {said}{does}{DIM:#}", question.request.id)?;
    if *given == AnswerEffect::Delivered {
        writeln!(out, "run {run} continues in the waiting process")?;
    }
    Ok(())
}

/// Aborts the selected run, or all runs of a project that wait for human input.
pub(crate) fn abort(
    args: &AbortArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if args.all {
        return abort_all(args, session, out);
    }
    let given = AnswerCommand {
        answer: EscalationAnswer::Abort,
        always: false,
        about: &args.about,
    };
    let Some(id) = &args.about.id else {
        return given.run(session, out);
    };
    let filter = EscalationFilter {
        prefix: Some(id.clone()),
        ..EscalationFilter::default()
    };
    if !escalation_answers::open_escalations(&filter, session)?.is_empty() {
        return given.run(session, out);
    }
    // Runs without an open escalation can be aborted, too.
    let letters = id.split_once('-').map_or(id.as_str(), |(run, _)| run);
    let run = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.find(Some(letters)).await
    })?;
    let reason = escalation_answers::abort_run(&run, &args.about.note, session)?;
    if !args.about.quiet {
        let short = run.id.short();
        writeln!(
            out,
            "run {short} has ended: {} ({})",
            sanitize(&reason),
            run_title(&run)
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Aborts every run of a project that waits for human input.
fn abort_all(args: &AbortArgs, session: &CommandContext<'_>, out: &mut Output) -> Result<ExitCode> {
    let project = match &args.project {
        Some(folder) => project_at(folder)?,
        None => current_project(),
    };
    let filter = EscalationFilter {
        project: Some(project.clone()),
        ..EscalationFilter::default()
    };
    let note = &args.about.note;
    let open = escalation_answers::open_escalations(&filter, session)?;
    let mut aborted = escalation_answers::abort_each(&open, note, session, |question, given| {
        if args.about.quiet {
            return Ok(());
        }
        show_answer(question, EscalationAnswer::Abort, given, out)
    })?;
    for run in blocked_without_escalation(&project, session)? {
        match escalation_answers::abort_run(&run, note, session) {
            Ok(reason) => {
                aborted.count += 1;
                if !args.about.quiet {
                    let short = run.id.short();
                    writeln!(
                        out,
                        "run {short} has ended: {} ({})",
                        sanitize(&reason),
                        run_title(&run)
                    )?;
                }
            }
            Err(error) => aborted.errors.push(error),
        }
    }
    if !args.about.quiet {
        let project = abbreviate_home(&project);
        match aborted.count {
            0 => writeln!(out, "nothing to abort in {project}")?,
            1 => writeln!(out, "aborted 1 run in {project}")?,
            n => writeln!(out, "aborted {n} runs in {project}")?,
        }
    }
    match aborted.errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Returns blocked runs without an open escalation.
fn blocked_without_escalation(
    project: &str,
    session: &CommandContext<'_>,
) -> Result<Vec<RunSummary>> {
    let filter = RunFilter {
        project: Some(project.to_owned()),
        status: vec![RunStatus::AwaitingHuman],
        ..RunFilter::default()
    };
    async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let listed = history.run_entries(&filter, clock::now().at).await?;
        let left = listed.into_iter().filter(|one| !one.supervised);
        Ok(left.map(|one| one.run).collect())
    })
}

/// Resumes the run in this process.
fn resume_run(
    question: &EscalationRow,
    quiet: bool,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let run = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.find(Some(question.run.as_str())).await
    })?;
    let taken = ResumeRequest {
        accept_changes: false,
        // An answer applies to its escalation, not to settings changed in the meantime.
        on_changes: OnSettingChanges::Hold,
        restart: &[],
        options: PipelineOptions::default(),
        verbosity: if quiet {
            Verbosity::Quiet
        } else {
            Verbosity::All
        },
        json: false,
        gateway: PrivateGatewayMode::Configured,
    };
    resume::resume_first_possible(vec![run], &taken, session, out)
}

/// Returns the command of a pending repair by the id of its escalation or run; none if the id matches neither.
pub(crate) fn proposed_command(
    id: &str,
    session: &CommandContext<'_>,
) -> Result<Option<CommandProposal>> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !id.bytes().all(is_id) {
        return Ok(None);
    }
    let filter = EscalationFilter {
        prefix: Some(id.to_owned()),
        ..EscalationFilter::default()
    };
    let mut found = escalation_answers::open_escalations(&filter, session)?;
    found.retain(|one| one.request.repair.is_some());
    let Some(question) = found.into_iter().next() else {
        return Ok(None);
    };
    let events = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.events(&question.run).await
    })?;
    let fold = RunProjection::from_events(&events);
    let repair = question.request.repair.as_deref().unwrap_or_default();
    let repair = fold.as_ref().and_then(|fold| fold.repairs.get(repair));
    Ok(repair.map(|repair| CommandProposal {
        command: repair.proposed.command.clone(),
        project: Some(PathBuf::from(&question.project)),
        working_dir: repair.proposed.working_dir.clone(),
        timeout: Duration::from_secs(repair.proposed.timeout_seconds.into()),
    }))
}
