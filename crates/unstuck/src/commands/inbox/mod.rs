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
use crate::config::Config;
use crate::escalation_answers::EscalationSelector;
use crate::output::Output;
use crate::{clock, completion, environment, escalation_answers};

/// List and answer pending requests
///
/// On a terminal, an interactive list: Enter opens a request, one key answers it, and its run continues in the
/// background. Elsewhere, the list is printed, newest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck inbox                   (on a terminal: ↑↓ move, Enter opens, one key answers, ? helps)
  unstuck inbox k3v9              (one question whole, with the command line of every answer)
  unstuck inbox --json | jq -r '.[] | .id + \" \" + .evidence'
  unstuck inbox --watch --json    (a line for every new question and for every one that was settled)
  unstuck approve k3v9            (an answer is a command: approve, reject, resolve, retry, escalate, skip, abort)

Exit code: 0, also if nothing waits; 1 if there is no such question or it was answered; 2 an error of our own.")]
pub(crate) struct InboxArgs {
    /// Show only this request in full: prefix of its id or of its run's id
    #[arg(
        value_name = "ID",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion::runs(),
        conflicts_with = "watch"
    )]
    id: Option<String>,

    /// Keep watching until Ctrl-C
    #[arg(long, short)]
    watch: bool,

    /// Print a JSON array; with an id one object, with --watch one line per event
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(
    args: &InboxArgs,
    config: &Config,
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
        return view::run(waiting, config, session);
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
    here && environment::variable("TERM").is_none_or(|name| name != "dumb")
}
