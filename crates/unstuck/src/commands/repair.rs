//! `unstuck repair`: diagnoses a failing check of a project and applies allowed fixes.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::command_policy::sanitize;
use unstuck_core::event::Event;
use unstuck_core::recovery_plan::shell_quote;
use unstuck_core::repair::{default_check, default_check_probes};
use unstuck_core::session_state::RepairRecord;
use unstuck_core::views::RunProjection;
use unstuck_repair::probe_project;
use unstuck_run::runner::{RequestedRepairMode, before_repair_label};
use unstuck_run::worktree::SnapshotStore;

use super::exec;
use super::run_result::report_result;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::effective_repair_settings;
use crate::error_report::{error_with_hint, refusal};
use crate::gateway::PrivateGatewayMode;
use crate::output::Output;
use crate::project_lookup::project_of;
use crate::run_history::RunHistory;
use crate::run_supervision::{self, Verbosity};
use crate::{async_runtime, completion_candidates, project_trust};

/// Run a project's check, diagnose the failure, and apply allowed fixes
///
/// If the check fails, unstuck selects a matching fix: first from your auto_approve, then from the built-in catalog.
/// It runs allowed fixes and proposes others, which wait for `unstuck approve`. Then it runs the check again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck repair                  (the project's default check, such as npm test)
  unstuck repair -- make test
  unstuck repair --ask -- npm test
  unstuck repair --undo k3v9      (reverts the changes of its newest repair)

Exit codes: 0 the check passes; 3 a repair needs approval (`unstuck approve`); otherwise, the check's own exit code.")]
pub(crate) struct RepairArgs {
    /// Ask before every fix, even if auto_approve allows it
    #[arg(long)]
    ask: bool,

    /// Undo the work tree changes of the run's newest repair (ignored files, such as node_modules, stay)
    #[arg(long, value_name = "RUN", conflicts_with_all = ["ask", "check"], add = completion_candidates::runs())]
    undo: Option<String>,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,

    /// Print a JSON summary of the run as the last line
    #[arg(long)]
    json: bool,

    /// Check and its arguments [default: the project's default check]
    #[arg(trailing_var_arg = true, value_name = "CHECK")]
    check: Vec<String>,
}

impl RepairArgs {
    /// True if a repair is to be undone.
    pub(crate) fn is_undo(&self) -> bool {
        self.undo.is_some()
    }
}

pub(crate) fn run(
    args: &RepairArgs,
    config: &Config,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if let Some(letters) = &args.undo {
        return undo(letters, session, out).map(|()| ExitCode::SUCCESS);
    }
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    let project = project_of(&here);
    let check = if !args.check.is_empty() {
        args.check.clone()
    } else {
        default_check_of(&project)?
    };
    let told = if args.quiet {
        Verbosity::Quiet
    } else {
        Verbosity::All
    };
    let wish = if args.ask {
        RequestedRepairMode::Ask
    } else {
        RequestedRepairMode::Auto
    };
    let request = exec::check_request(check, config, wish)?;
    let mut repairs =
        effective_repair_settings::repair_setup(config, &request.project, wish, !args.quiet)?;
    if args.check.is_empty() {
        let words: Vec<_> = request
            .command
            .iter()
            .map(|word| shell_quote(word))
            .collect();
        repairs.notes.push(format!("check: `{}`", words.join(" ")));
    }
    let finished = run_supervision::run_command(
        session,
        config,
        request,
        told,
        repairs,
        PrivateGatewayMode::Configured,
    )?;
    report_result(&finished, &args.json.into(), out)
}

/// Returns the default check of the project.
fn default_check_of(project: &Path) -> Result<Vec<String>> {
    let facts = probe_project(project, project, None, &default_check_probes());
    default_check(&facts).ok_or_else(|| {
        error_with_hint(
            format!("cannot determine the check of {}", project.display()),
            "specify it: unstuck repair -- COMMAND",
        )
    })
}

/// Restores the work tree to the snapshot before the newest repair of a run.
fn undo(letters: &str, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    if let Some(why) = project_trust::agent_evidence() {
        return Err(refusal(
            format!("only a human can undo a repair: {why}"),
            "run it in your own terminal",
        ));
    }
    let (run, events) = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let run = history.find(Some(letters)).await?;
        let events = history.events(&run.id).await?;
        anyhow::Ok((run, events))
    })?;
    let fold = RunProjection::from_events(&events);
    let ran = |repair: &&RepairRecord| repair.exit_code.is_some();
    let repair = fold
        .as_ref()
        .and_then(|fold| fold.repairs.all().iter().rev().find(ran));
    let short = run.id.short();
    let Some(repair) = repair else {
        return Err(refusal(
            format!("run {short} has no repairs"),
            "`unstuck runs` lists all runs",
        ));
    };
    let state = run_supervision::state_dir(session.store);
    let snapshots = SnapshotStore::open(Path::new(&run.project), &run.id, &state)?;
    let kept = snapshots.find(&before_repair_label(&repair.proposed.id))?;
    let Some(before) = kept else {
        return Err(refusal(
            format!(
                "no snapshot of the work tree before `{}`",
                sanitize(&repair.proposed.command)
            ),
            "repairs can be undone only in a git repository",
        ));
    };
    let after = events
        .iter()
        .rev()
        .find_map(|recorded| match &recorded.event {
            Event::RepairExecuted(ran) if ran.id == repair.proposed.id => ran.tree.clone(),
            _ => None,
        });
    if after.as_ref() != Some(&snapshots.current()?.tree) {
        return Err(refusal(
            "the work tree has changed since the repair; undo would discard these changes",
            format!(
                "`git diff {} --` shows all differences from before the repair",
                before.tree
            ),
        ));
    }
    let restored = snapshots.restore(&before)?;
    let files = match restored.written.len() + restored.removed.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    writeln!(
        out,
        "reverted the changes of `{}` ({files}); ignored files are unchanged",
        sanitize(&repair.proposed.command)
    )?;
    Ok(())
}
