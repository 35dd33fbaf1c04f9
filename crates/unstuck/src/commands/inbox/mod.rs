//! `unstuck inbox`: lists pending requests and answers them.

mod details;
mod json;
mod text_list;
mod view;
mod watch;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_store::EscalationFilter;

use self::json::EscalationJson;
use crate::command_context::CommandContext;
use crate::escalation_answers::EscalationSelector;
use crate::output::Output;
use crate::{clock, completion_candidates, environment_variables, escalation_answers};

/// List and answer pending requests
///
/// On a terminal, shows an interactive list: Enter opens a request, one key answers it, and its run continues in the
/// background. Elsewhere, prints the list, newest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck inbox                   (interactive on a terminal; ? shows the keys)
  unstuck inbox k3v9              (one request in full, with a command for each answer)
  unstuck inbox --json | jq -r '.[] | .id + \" \" + .evidence'
  unstuck inbox --watch --json    (one line per opened or closed request)
  unstuck approve k3v9            (also: reject, resolve, retry, escalate, skip, abort)

Exit codes: 0 success, even if the inbox is empty; 1 request not found or already answered; 2 unstuck error.")]
pub(crate) struct InboxArgs {
    /// Show only this request in full: prefix of its id or of its run's id
    #[arg(
        value_name = "ID",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion_candidates::runs(),
        conflicts_with = "watch"
    )]
    id: Option<String>,

    /// Report opened and closed requests until Ctrl-C
    #[arg(long, short)]
    watch: bool,

    /// Print a JSON array; with an id, one object; with --watch, one line per event
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(
    args: &InboxArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if let Some(id) = &args.id {
        show_one(id, args.json, session, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let by_keys = !args.json && is_interactive();
    if args.watch && !by_keys {
        watch::run(args.json, session, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let waiting = escalation_answers::open_escalations(&EscalationFilter::default(), session)?;
    if by_keys && (args.watch || !waiting.is_empty()) {
        return view::run(waiting, session);
    }
    if args.json {
        let told: Vec<_> = waiting
            .iter()
            .map(|one| EscalationJson::from_escalation(one, session))
            .collect();
        out.write_json(&told)?;
    } else {
        text_list::print(&waiting, clock::now().at, session, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows one escalation in full.
fn show_one(id: &str, json: bool, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let question = escalation_answers::find_escalation(
        EscalationSelector::Id(id),
        EscalationAnswer::Resolve,
        session,
    )?;
    if json {
        out.write_json(&EscalationJson::from_escalation(&question, session))
    } else {
        details::print(&question, clock::now().at, session, out)
    }
}

/// True if run interactively on a capable terminal.
fn is_interactive() -> bool {
    let here = io::stdin().is_terminal() && io::stdout().is_terminal();
    here && environment_variables::variable("TERM").is_none_or(|name| name != "dumb")
}
