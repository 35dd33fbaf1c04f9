//! `unstuck preview`: shows what a command would change before it is approved.

mod errors;
mod preview_run;
mod print;
mod progress;
mod terminal_prompt;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use unstuck_core::duration;
use unstuck_repair::preview::{
    Preview, PreviewApplyReport, PreviewCrashRecoveryOutcome, PreviewReport, PreviewStore,
};
use unstuck_run::nested_run_detection::detect_nested_run;

use self::terminal_prompt::PreviewChoice;
use crate::clock;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::human_only_commands::human_only_error;
use crate::output::{Output, YELLOW};
use crate::project_lookup::abbreviate_home;
use crate::redacted_stderr::RedactedStderr;
use crate::run_supervision::state_dir;

/// Exit code after a timeout.
const EXIT_TIMED_OUT: u8 = 124;

/// Show what a command would change in the project, then apply or drop it
///
/// The command runs on an overlay of the project, fully sandboxed and without network access: the project stays
/// unchanged until you apply the preview. A preview shows only file changes. Without a command, lists saved previews.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck preview \"rm -rf node_modules && npm ci\"
  unstuck preview \"npm ci\" --working-dir packages/web --network
  unstuck preview q7w2                (the command of an open request)
  unstuck preview --apply 3f9a2c81d07e
  unstuck preview --drop 3f9a2c81d07e
  unstuck preview --json \"make clean\" | jq '.rows[].path'

Exit code: the command's own if it ran (124 after a timeout); otherwise 0 success, 1 refused, 2 unstuck error.")]
pub(crate) struct PreviewArgs {
    /// Command, or the id of a request that proposes one
    #[arg(value_name = "COMMAND|ESCALATION")]
    target: Option<String>,

    /// Working directory, relative to the project root [default: the root]
    #[arg(long, value_name = "DIR", requires = "target")]
    working_dir: Option<String>,

    /// Allow network access; its effects are real
    #[arg(long, requires = "target")]
    network: bool,

    /// Timeout [default: the timeout in the request, otherwise 120s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "target")]
    timeout: Option<Duration>,

    /// Apply the preview with this id; with a command, apply its changes if it succeeds
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "drop")]
    apply: Option<String>,

    /// Drop the preview with this id; with a command, only show its changes
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    drop: Option<String>,

    /// Show a saved preview again
    #[arg(long, value_name = "ID", conflicts_with_all = ["target", "apply", "drop"])]
    show: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A proposed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandProposal {
    pub(crate) command: String,
    /// Project of the proposal; none for that of the current directory.
    pub(crate) project: Option<PathBuf>,
    pub(crate) working_dir: Option<String>,
    pub(crate) timeout: Duration,
}

/// Looks up the proposal of an open escalation by an id prefix; none if there is no such escalation.
pub(crate) type ProposalLookup<'a> = &'a dyn Fn(&str) -> Result<Option<CommandProposal>>;

/// The requested operation.
enum PreviewAction<'a> {
    List,
    Run(&'a str, AfterPreview),
    Show(&'a str),
    Apply(&'a str),
    Drop(&'a str),
}

/// The operation after a preview has been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterPreview {
    /// Ask on a terminal; keep the preview otherwise.
    Ask,
    Apply,
    Drop,
}

/// Final state of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PreviewOutcome {
    Kept,
    Dropped,
    Applied(PreviewApplyReport),
}

pub(crate) fn run(
    args: &PreviewArgs,
    config: &Config,
    session: &CommandContext<'_>,
    escalated: ProposalLookup<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let previews = PreviewStore::in_state_dir(&state_dir(session.store));
    if args.apply.is_some() {
        refuse_agents()?;
    }
    recover_previews(&previews)?;
    let find = |id: &str| previews.find(id).map_err(errors::preview_error);
    let (preview, choice) = match args.action()? {
        PreviewAction::List => {
            list(&previews.list(), args.json, out)?;
            return Ok(ExitCode::SUCCESS);
        }
        PreviewAction::Run(target, then) => {
            let trial = preview_run::PreviewRequest::new(args, target, config, escalated)?;
            let preview = trial.run(session, &previews, !args.json)?;
            return report_preview(args, preview, then, session, out);
        }
        PreviewAction::Show(id) => (find(id)?, PreviewChoice::Keep),
        PreviewAction::Apply(id) => (find(id)?, PreviewChoice::Apply),
        PreviewAction::Drop(id) => (find(id)?, PreviewChoice::Drop),
    };
    if choice == PreviewChoice::Keep && !args.json {
        print::report(preview.report(), out)?;
    }
    apply_choice(args, preview, choice, session, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the changes of a command and applies, drops or keeps them.
fn report_preview(
    args: &PreviewArgs,
    preview: Preview,
    then: AfterPreview,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let report = preview.report().clone();
    if !args.json {
        print::report(&report, out)?;
        // The report has been shown, whatever happens next.
        out.flush()?;
    }
    let failed = report.execution.exit_code != 0;
    let choice = match then {
        // There is nothing to decide.
        _ if report.is_empty() => PreviewChoice::Drop,
        AfterPreview::Drop => PreviewChoice::Drop,
        AfterPreview::Apply if failed => {
            let code = report.execution.exit_code;
            let told = format!("not applied: the command failed with exit code {code}");
            writeln!(RedactedStderr::auto(), "{YELLOW}{told}{YELLOW:#}")?;
            PreviewChoice::Keep
        }
        AfterPreview::Apply => PreviewChoice::Apply,
        AfterPreview::Ask if args.json => PreviewChoice::Keep,
        AfterPreview::Ask => terminal_prompt::choose(&report, out)?,
    };
    apply_choice(args, preview, choice, session, out)?;
    let code = if report.execution.timed_out {
        EXIT_TIMED_OUT
    } else {
        u8::try_from(report.execution.exit_code).unwrap_or(1)
    };
    Ok(ExitCode::from(code))
}

/// Applies, drops or keeps a preview as chosen, and reports it.
fn apply_choice(
    args: &PreviewArgs,
    preview: Preview,
    choice: PreviewChoice,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let report = preview.report().clone();
    let fate = match choice {
        PreviewChoice::Keep => PreviewOutcome::Kept,
        PreviewChoice::Drop => {
            preview.discard().map_err(errors::preview_error)?;
            PreviewOutcome::Dropped
        }
        PreviewChoice::Apply => {
            refuse_agents()?;
            PreviewOutcome::Applied(preview.apply().map_err(errors::apply_error)?)
        }
    };
    if args.json {
        print::json(&report, &fate, out)
    } else {
        print::print_outcome(&report, &fate, session, out)
    }
}

/// Refuses to run inside an agent: only a human may apply a preview.
fn refuse_agents() -> Result<()> {
    match detect_nested_run() {
        Some(inside) => Err(human_only_error("apply a preview", &inside.to_string())),
        None => Ok(()),
    }
}

impl PreviewArgs {
    /// True if a preview is applied or a saved one is dropped.
    pub(crate) fn changes_project(&self) -> bool {
        self.apply.is_some() || self.drop.is_some() && self.target.is_none()
    }

    fn action(&self) -> Result<PreviewAction<'_>> {
        let (apply, drop) = (self.apply.as_deref(), self.drop.as_deref());
        let wish = match (self.target.as_deref(), self.show.as_deref(), apply, drop) {
            (None, Some(id), ..) => PreviewAction::Show(id),
            (None, None, None, None) => PreviewAction::List,
            (None, None, Some(id), _) if !id.is_empty() => PreviewAction::Apply(id),
            (None, None, _, Some(id)) if !id.is_empty() => PreviewAction::Drop(id),
            (Some(target), _, None, None) => PreviewAction::Run(target, AfterPreview::Ask),
            (Some(target), _, Some(""), _) => PreviewAction::Run(target, AfterPreview::Apply),
            (Some(target), _, _, Some("")) => PreviewAction::Run(target, AfterPreview::Drop),
            (None, ..) => {
                return Err(error_with_hint(
                    "a preview id is required",
                    "`unstuck preview` lists saved previews",
                ));
            }
            (Some(_), ..) => {
                return Err(error_with_hint(
                    "cannot combine a command with a preview id",
                    "put --apply or --drop after the command: unstuck preview \"npm ci\" --apply",
                ));
            }
        };
        Ok(wish)
    }
}

/// Completes or rolls back an apply that a crash interrupted, and reports it.
fn recover_previews(previews: &PreviewStore) -> Result<()> {
    for settled in previews.recover() {
        let (id, project) = (
            &settled.id,
            abbreviate_home(&settled.project.display().to_string()),
        );
        let told = match settled.outcome {
            PreviewCrashRecoveryOutcome::Finished => {
                format!("applying preview {id} to {project} was interrupted; completed now")
            }
            PreviewCrashRecoveryOutcome::RolledBack => format!(
                "applying preview {id} to {project} was interrupted; rolled back, the preview is kept"
            ),
            PreviewCrashRecoveryOutcome::Conflicted(left) => format!(
                "applying preview {id} to {project} was interrupted, and the project has changed since; check {}",
                left.join(", ")
            ),
        };
        writeln!(RedactedStderr::auto(), "{YELLOW}{told}{YELLOW:#}")?;
    }
    Ok(())
}

fn list(reports: &[PreviewReport], json: bool, out: &mut Output) -> Result<()> {
    if json {
        return out.write_json(&reports);
    }
    if reports.is_empty() {
        writeln!(RedactedStderr::auto(), "no saved previews")?;
    }
    print::list(reports, clock::now().at, out)
}
