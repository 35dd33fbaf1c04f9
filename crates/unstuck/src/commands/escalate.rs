//! `unstuck escalate`: switches to a stronger model, as an answer to an escalation or for a running session.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use unstuck_core::decision::CostEstimate;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_store::EscalationFilter;

use super::answer::{self, AnswerArgs};
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::error_report::{error_with_hint, refusal};
use crate::model_switch::{ModelSwitchTarget, SwitchDestination};
use crate::output::{BOLD, Output};
use crate::text_display::signed_usd;
use crate::{clock, environment, escalation_answers, runtime};

/// Continue with a stronger model
///
/// For a waiting run, this is its answer. For a running session of a gateway, further calls of the same conversation
/// use the new model until switched back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck escalate                          (the open request of this project)
  unstuck escalate k3v9                     (the question of this run, or its session while it runs)
  unstuck escalate k3v9 --to claude-opus-5-5 --yes
  unstuck escalate k3v9-2                   (its second session)
  unstuck escalate k3v9 --back              (to the model that it had)

Exit codes: as of `unstuck exec` for answers; 0 when it was moved; 1 when there is no such session, it is at the most capable model, it was declined, or inside a supervised agent; 2 where nobody can be asked and --yes was not given.")]
pub(crate) struct EscalateArgs {
    #[command(flatten)]
    answer: AnswerArgs,

    /// Switch to this model [default: the next one on the session's ladder]
    #[arg(long, value_name = "MODEL", conflicts_with = "back")]
    to: Option<String>,

    /// Switch back to the original model
    #[arg(long)]
    back: bool,

    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(
    args: &EscalateArgs,
    config: &Config,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let asks = || is_for_escalation(args, session);
    match args.answer.id() {
        Some(id) if !asks()? => switch_session(args, id, config, session, out),
        None if args.back || args.to.is_some() => Err(error_with_hint(
            "which session is meant?",
            "unstuck escalate ID; `unstuck runs` lists them",
        )),
        _ => answer::answer(
            EscalationAnswer::SwitchModel,
            &args.answer,
            config,
            session,
            out,
        ),
    }
}

/// True if the id refers to an escalation.
fn is_for_escalation(args: &EscalateArgs, session: &CommandContext<'_>) -> Result<bool> {
    if args.back || args.to.is_some() {
        return Ok(false);
    }
    let filter = EscalationFilter {
        prefix: args.answer.id().map(str::to_owned),
        ..EscalationFilter::default()
    };
    Ok(!escalation_answers::open_escalations(&filter, session)?.is_empty())
}

/// Switches the model of a session.
fn switch_session(
    args: &EscalateArgs,
    id: &str,
    config: &Config,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let now = clock::now().at;
    let meant = runtime::block_on(ModelSwitchTarget::find(id, session.store))?;
    let to = match (&args.to, args.back) {
        (_, true) => SwitchDestination::Previous,
        (Some(to), false) => SwitchDestination::Named(to),
        (None, false) => SwitchDestination::Next,
    };
    let (from, to) = meant.resolve_models(to, config.catalog())?;
    let cost = meant.extra_cost((&from, &to), config.catalog());
    show(&meant, (&from, &to), &cost, out)?;
    if !args.yes && !confirm(out)? {
        return Err(refusal("nothing was changed", "--yes does not ask"));
    }
    runtime::block_on(async {
        let redactor = Arc::new(environment::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let models = (from, to.clone());
        meant.record_switch(&store, models, &cost, now).await?;
        store.close().await.map_err(crate::store::with_hint)
    })?;
    writeln!(out, "its calls go to {to} from now on")?;
    Ok(ExitCode::SUCCESS)
}

fn show(
    meant: &ModelSwitchTarget,
    (from, to): (&str, &str),
    cost: &CostEstimate,
    out: &mut Output,
) -> Result<()> {
    let whose = meant.session.part.as_ref().map(|part| part.display_name(1));
    let whose = whose.unwrap_or_else(|| meant.run.command.join(" "));
    writeln!(out, "session {} ({whose})", meant.session.id.as_str())?;
    writeln!(out, "  {BOLD}{from} → {to}{BOLD:#}")?;
    match cost.usd() {
        Some(usd) => writeln!(
            out,
            "  about {} if as much is still to come as was used so far: {}",
            signed_usd(usd),
            cost.formula
        )?,
        None => writeln!(out, "  what it costs is not known: {}", cost.formula)?,
    }
    Ok(())
}

/// Asks for confirmation on the terminal.
fn confirm(out: &mut Output) -> Result<bool> {
    if !io::stdin().is_terminal() || out.columns().is_none() {
        out.flush()?;
        return Err(error_with_hint(
            "nobody can be asked: this is no terminal",
            "--yes moves it without asking",
        ));
    }
    write!(out, "Move it? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
