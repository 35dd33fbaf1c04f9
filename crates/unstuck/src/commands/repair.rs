//! `unstuck repair`: diagnoses a failing check of a project and applies allowed fixes.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::command_policy::sanitize;
use unstuck_core::event::Event;
use unstuck_core::planner::shell_quote;
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
use crate::error_report::{error_with_hint, refusal};
use crate::gateway::GatewayMode;
use crate::output::Output;
use crate::paths::project_of;
use crate::repair_terms;
use crate::run_history::RunHistory;
use crate::run_session::{self, Verbosity};
use crate::{completion, project_trust, runtime};

/// Run a project's check, diagnose the failure, and apply allowed fixes
///
/// If the check fails, a matching fix is selected: first from your auto_approve, then from the built-in catalog.
/// Allowed fixes run; others are proposed and wait for `unstuck approve`. Then the check runs again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck repair                  (the check that the project itself suggests, such as npm test)
  unstuck repair -- make test
  unstuck repair --ask -- npm test
  unstuck repair --undo k3v9      (restores what its newest repair changed)

Exit codes: 0 the check passes; 3 a repair is proposed, `unstuck approve` allows it; otherwise the check's own.")]
pub(crate) struct RepairArgs {
    /// Ask before every fix, even if auto_approve allows it
    #[arg(long)]
    ask: bool,

    /// Undo the work tree changes of the run's newest repair (ignored files, such as node_modules, stay)
    #[arg(long, value_name = "RUN", conflicts_with_all = ["ask", "check"], add = completion::runs())]
    undo: Option<String>,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,

    /// Print a JSON summary of the run as the last line
    #[arg(long)]
    json: bool,

    /// Check and its arguments [default: suggested by the project]
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
    let here = std::env::current_dir().context("cannot tell the current folder")?;
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
    let mut repairs = repair_terms::repair_setup(config, &request.project, wish, !args.quiet)?;
    if args.check.is_empty() {
        let words: Vec<_> = request
            .command
            .iter()
            .map(|word| shell_quote(word))
            .collect();
        repairs
            .notes
            .push(format!("the check is `{}`", words.join(" ")));
    }
    let finished = run_session::run_command(
        session,
        config,
        request,
        told,
        repairs,
        GatewayMode::Configured,
    )?;
    report_result(&finished, &args.json.into(), out)
}

/// Returns the default check of the project.
fn default_check_of(project: &Path) -> Result<Vec<String>> {
    let facts = probe_project(project, project, None, &default_check_probes());
    default_check(&facts).ok_or_else(|| {
        error_with_hint(
            format!("{} does not tell how it is checked", project.display()),
            "name the check: unstuck repair -- COMMAND",
        )
    })
}

/// Restores the work tree to the snapshot before the newest repair of a run.
fn undo(letters: &str, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    if let Some(why) = project_trust::agent_evidence() {
        return Err(refusal(
            format!("only a person can undo a repair: {why}"),
            "do it in a terminal of your own",
        ));
    }
    let (run, events) = runtime::block_on(async {
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
            format!("run {short} has repaired nothing"),
            "`unstuck runs` lists what there is",
        ));
    };
    let state = run_session::state_dir(session.store);
    let snapshots = SnapshotStore::open(Path::new(&run.project), &run.id, &state)?;
    let kept = snapshots.find(&before_repair_label(&repair.proposed.id))?;
    let Some(before) = kept else {
        return Err(refusal(
            format!(
                "the work tree before `{}` was not kept",
                sanitize(&repair.proposed.command)
            ),
            "only in a git repository can a repair be undone",
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
            "the work tree was changed since the repair, and that would be lost",
            format!(
                "`git diff {} --` shows all that differs from before the repair",
                before.tree
            ),
        ));
    }
    let restored = snapshots.restore(&before)?;
    let files = restored.written.len() + restored.removed.len();
    writeln!(
        out,
        "undone: what `{}` had changed ({files} files); ignored files were left as they are",
        sanitize(&repair.proposed.command)
    )?;
    Ok(())
}
