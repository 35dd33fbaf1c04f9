//! `unstuck repair`: finds out what is broken in a project, and repairs what may be repaired.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::action::shell_quote;
use unstuck_core::episode::RunFold;
use unstuck_core::event::Event;
use unstuck_core::guard::show;
use unstuck_core::recovery::Repair;
use unstuck_core::repair::{usual_check, usual_check_questions};
use unstuck_repair::survey;
use unstuck_run::drive::{RepairWish, label_before};
use unstuck_run::worktree::Snapshots;

use super::ended::tell;
use super::exec;
use crate::config::Config;
use crate::gateway::Wish;
use crate::history::History;
use crate::output::Output;
use crate::place::project_of;
use crate::repairs;
use crate::report::{hinted, refused};
use crate::session::Session;
use crate::supervise::{self, Told};
use crate::{completion, runtime, trusting};

/// Run a project's check, find out what is broken, and repair what may be repaired
///
/// The check is run; if it fails, the repair that fits is looked for: in your auto_approve, then in what unstuck knows.
/// What you have allowed runs, anything else is proposed and waits for `unstuck approve`. Then the check runs again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck repair                  (the check that the project itself suggests, such as npm test)
  unstuck repair -- make test
  unstuck repair --ask -- npm test
  unstuck repair --undo k3v9      (restores what its newest repair changed)

Exit codes: 0 the check passes; 3 a repair is proposed, `unstuck approve` allows it; otherwise the check's own.")]
pub(crate) struct RepairArgs {
    /// Run nothing without asking, also what your auto_approve allows
    #[arg(long)]
    ask: bool,

    /// Undo what the newest repair of this run changed in the work tree (ignored files, such as node_modules, stay)
    #[arg(long, value_name = "RUN", conflicts_with_all = ["ask", "check"], add = completion::runs())]
    undo: Option<String>,

    /// Say nothing but what the check says
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object about the run as the last line
    #[arg(long)]
    json: bool,

    /// The check and its arguments [default: what the project suggests]
    #[arg(trailing_var_arg = true, value_name = "CHECK")]
    check: Vec<String>,
}

impl RepairArgs {
    /// Whether a repair is undone.
    pub(crate) fn undoes(&self) -> bool {
        self.undo.is_some()
    }
}

pub(crate) fn run(
    args: &RepairArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if let Some(letters) = &args.undo {
        return undo(letters, session, out).map(|()| ExitCode::SUCCESS);
    }
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let project = project_of(&here);
    let check = match args.check.is_empty() {
        false => args.check.clone(),
        true => suggested(&project)?,
    };
    let told = if args.quiet { Told::Nothing } else { Told::All };
    let wish = if args.ask {
        RepairWish::Ask
    } else {
        RepairWish::Auto
    };
    let request = exec::check_request(check, config, wish)?;
    let mut repairs = repairs::allowed(config, &request.project, wish, !args.quiet)?;
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
    let finished = supervise::start(session, config, request, told, repairs, Wish::Configured)?;
    tell(&finished, &args.json.into(), out)
}

/// The check that the project itself suggests.
fn suggested(project: &Path) -> Result<Vec<String>> {
    let facts = survey(project, project, None, &usual_check_questions());
    usual_check(&facts).ok_or_else(|| {
        hinted(
            format!("{} does not tell how it is checked", project.display()),
            "name the check: unstuck repair -- COMMAND",
        )
    })
}

/// Restores the work tree as it was before the newest repair of a run.
fn undo(letters: &str, session: &Session<'_>, out: &mut Output) -> Result<()> {
    if let Some(why) = trusting::inside_an_agent() {
        return Err(refused(
            format!("only a person can undo a repair: {why}"),
            "do it in a terminal of your own",
        ));
    }
    let (run, events) = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let run = history.find(Some(letters)).await?;
        let events = history.events(&run.id).await?;
        anyhow::Ok((run, events))
    })?;
    let fold = RunFold::fold(&events);
    let ran = |repair: &&Repair| repair.exit_code.is_some();
    let repair = fold
        .as_ref()
        .and_then(|fold| fold.repairs.all().iter().rev().find(ran));
    let short = run.id.short();
    let Some(repair) = repair else {
        return Err(refused(
            format!("run {short} has repaired nothing"),
            "`unstuck runs` lists what there is",
        ));
    };
    let state = supervise::state_folder(session.store);
    let snapshots = Snapshots::open(Path::new(&run.project), &run.id, &state)?;
    let kept = snapshots.find(&label_before(&repair.proposed.id))?;
    let Some(before) = kept else {
        return Err(refused(
            format!(
                "the work tree before `{}` was not kept",
                show(&repair.proposed.command)
            ),
            "only in a git repository can a repair be undone",
        ));
    };
    let after = events
        .iter()
        .rev()
        .find_map(|recorded| match &recorded.event {
            Event::RecoveryExecuted(ran) if ran.id == repair.proposed.id => ran.tree.clone(),
            _ => None,
        });
    if after.as_ref() != Some(&snapshots.now()?.tree) {
        return Err(refused(
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
        show(&repair.proposed.command)
    )?;
    Ok(())
}
