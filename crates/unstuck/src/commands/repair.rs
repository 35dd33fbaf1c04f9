//! `unstuck repair`: finds out what is broken in a project, and repairs what may be repaired.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::action::shell_quote;
use unstuck_core::repair::usual_check;
use unstuck_run::drive::RepairWish;

use super::ended::tell;
use super::exec;
use crate::config::Config;
use crate::output::Output;
use crate::place::project_of;
use crate::repairs;
use crate::report::hinted;
use crate::supervise::{self, Session, Told};

/// Run a project's check, find out what is broken, and repair what may be repaired
///
/// The check is run; if it fails, the repair that fits is looked for: in your auto_approve, then in what unstuck knows.
/// What you have allowed runs, anything else is proposed and waits for `unstuck approve`. Then the check runs again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck repair                  (the check that the project itself suggests, such as npm test)
  unstuck repair -- make test
  unstuck repair --ask -- npm test

Exit codes: 0 the check passes; 3 a repair is proposed, `unstuck approve` allows it; otherwise the check's own.")]
pub(crate) struct RepairArgs {
    /// Run nothing without asking, also what your auto_approve allows
    #[arg(long)]
    ask: bool,

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

pub(crate) fn run(
    args: &RepairArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let project = project_of(&here);
    let check = match args.check.is_empty() {
        false => args.check.clone(),
        true => suggested(&project)?,
    };
    let told = if args.quiet { Told::Nothing } else { Told::All };
    let wish = if args.ask { RepairWish::Ask } else { RepairWish::Auto };
    let request = exec::check_request(check, config, wish)?;
    let mut repairs = repairs::allowed(config, &request.project, wish, told)?;
    if args.check.is_empty() {
        let words: Vec<_> = request.command.iter().map(|word| shell_quote(word)).collect();
        repairs.notes.push(format!("the check is `{}`", words.join(" ")));
    }
    let finished = supervise::start(session, config, request, told, repairs)?;
    tell(&finished, args.json, out)
}

/// The check that the project itself suggests.
fn suggested(project: &std::path::Path) -> Result<Vec<String>> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let facts = unstuck_repair::survey::of_project(project, &environment);
    usual_check(&facts).ok_or_else(|| {
        hinted(
            format!("{} does not tell how it is checked", project.display()),
            "name the check: unstuck repair -- COMMAND",
        )
    })
}
