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
use crate::model_switch::{ModelSwitchDestination, SessionToSwitch};
use crate::output::{BOLD, Output};
use crate::sanitized_text::signed_usd;
use crate::{async_runtime, clock, environment_variables, escalation_answers};

/// Continue with a stronger model
///
/// Answers the request of a waiting run. In an active session of a gateway, further calls of the same conversation
/// use the new model until you switch back.
#[derive(Debug, Args)]
#[command(
    visible_alias = "switch-model",
    after_help = "Examples:
  unstuck escalate                          (the open request of this project)
  unstuck escalate k3v9                     (this run's request, or its session while it runs)
  unstuck escalate k3v9 --to claude-opus-5-5 --yes
  unstuck escalate k3v9-2                   (its second session)
  unstuck escalate k3v9 --back              (to the original model)

Exit codes: 0 if the model was switched; for an answer, those of `unstuck exec` for the resumed run; 1 session not found, already at the most capable model, declined, or inside a supervised agent; 2 confirmation required, but there is no terminal and no --yes."
)]
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
            "no session given",
            "run `unstuck escalate ID`; `unstuck runs` lists the ids",
        )),
        _ => answer::answer(EscalationAnswer::SwitchModel, &args.answer, session, out),
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
    let meant = async_runtime::block_on(SessionToSwitch::find(id, session.store))?;
    let to = match (&args.to, args.back) {
        (_, true) => ModelSwitchDestination::Previous,
        (Some(to), false) => ModelSwitchDestination::Named(to),
        (None, false) => ModelSwitchDestination::Next,
    };
    let (from, to) = meant.resolve_models(to, config.catalog())?;
    let cost = meant.extra_cost((&from, &to), config.catalog());
    show(&meant, (&from, &to), &cost, out)?;
    if !args.yes && !confirm(out)? {
        return Err(refusal(
            "model switch canceled",
            "--yes skips the confirmation",
        ));
    }
    async_runtime::block_on(async {
        let redactor = Arc::new(environment_variables::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let models = (from, to.clone());
        meant.record_switch(&store, models, &cost, now).await?;
        store.close().await.map_err(crate::store::with_hint)
    })?;
    writeln!(out, "switched: further calls go to {to}")?;
    Ok(ExitCode::SUCCESS)
}

fn show(
    meant: &SessionToSwitch,
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
            "  about {} if future usage equals usage so far: {}",
            signed_usd(usd),
            cost.formula
        )?,
        None => writeln!(out, "  cost unknown: {}", cost.formula)?,
    }
    Ok(())
}

/// Asks for confirmation on the terminal.
fn confirm(out: &mut Output) -> Result<bool> {
    if !io::stdin().is_terminal() || out.columns().is_none() {
        out.flush()?;
        return Err(error_with_hint(
            "cannot ask for confirmation: not a terminal",
            "--yes skips the confirmation",
        ));
    }
    write!(out, "Switch the model? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
