//! `unstuck escalate`: goes on with a stronger model, as an answer to a question or while a session runs.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use unstuck_core::decision::CostEstimate;
use unstuck_core::question::Answer;
use unstuck_store::QuestionFilter;

use super::answer::{self, AnswerArgs};
use crate::config::Config;
use crate::moving::{Meant, To};
use crate::output::{BOLD, Output};
use crate::report::{hinted, refused};
use crate::session::Session;
use crate::show_text::signed_usd;
use crate::{answering, clock, environment, runtime};

/// Go on with a stronger model
///
/// Where a run asks, this is the answer. Where a session of a gateway runs, its further calls go to the other model, in the
/// same conversation, until it is moved back.
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

    /// Move the session to this model [default: the next one of its ladder]
    #[arg(long, value_name = "MODEL", conflicts_with = "back")]
    to: Option<String>,

    /// Move the session back to the model that it had
    #[arg(long)]
    back: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(
    args: &EscalateArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let asks = || answers_question(args, session);
    match args.answer.id() {
        Some(id) if !asks()? => moved(args, id, config, session, out),
        None if args.back || args.to.is_some() => Err(hinted(
            "which session is meant?",
            "unstuck escalate ID; `unstuck runs` lists them",
        )),
        _ => answer::answer(Answer::Escalate, &args.answer, config, session, out),
    }
}

/// Whether a question is meant.
fn answers_question(args: &EscalateArgs, session: &Session<'_>) -> Result<bool> {
    if args.back || args.to.is_some() {
        return Ok(false);
    }
    let filter = QuestionFilter {
        prefix: args.answer.id().map(str::to_owned),
        ..QuestionFilter::default()
    };
    Ok(!answering::open(&filter, session)?.is_empty())
}

/// A session is moved to another model.
fn moved(
    args: &EscalateArgs,
    id: &str,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let now = clock::now().at;
    let meant = runtime::block_on(Meant::find(id, session.store))?;
    let to = match (&args.to, args.back) {
        (_, true) => To::Back,
        (Some(to), false) => To::Named(to),
        (None, false) => To::Next,
    };
    let (from, to) = meant.models(to, config.catalog())?;
    let cost = meant.dearer((&from, &to), config.catalog());
    show(&meant, (&from, &to), &cost, out)?;
    if !args.yes && !agrees(out)? {
        return Err(refused("nothing was changed", "--yes does not ask"));
    }
    runtime::block_on(async {
        let redactor = Arc::new(environment::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let models = (from, to.clone());
        meant.record(&store, models, &cost, now).await?;
        store.close().await.map_err(crate::store::explained)
    })?;
    writeln!(out, "its calls go to {to} from now on")?;
    Ok(ExitCode::SUCCESS)
}

fn show(
    meant: &Meant,
    (from, to): (&str, &str),
    cost: &CostEstimate,
    out: &mut Output,
) -> Result<()> {
    let whose = meant.session.part.as_ref().map(|part| part.name(1));
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

/// Asks the person at the terminal.
fn agrees(out: &mut Output) -> Result<bool> {
    if !io::stdin().is_terminal() || out.columns().is_none() {
        out.flush()?;
        return Err(hinted(
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
