//! `unstuck escalate`: goes on with a stronger model, as an answer to a question or while a session runs.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use unstuck_core::decision::{
    Catalog, CostEstimate, EscalationReason, EscalationRecord, NoModel, Tokens,
};
use unstuck_core::episode::{RunView, SessionView};
use unstuck_core::event::{Event, ModelEscalated, Recorded};
use unstuck_core::question::Answer;
use unstuck_run::inside::supervised_agent;
use unstuck_store::{Append, CallFilter, QuestionFilter, Store};

use super::answer::{self, AnswerArgs};
use crate::config::Config;
use crate::history::History;
use crate::output::{BOLD, Output};
use crate::report::{hinted, refused};
use crate::session::Session;
use crate::show_text::signed_usd;
use crate::{answering, clock, environment, runtime};

/// What a call is taken to use where nothing is known of the session's.
const USUAL: Tokens = Tokens {
    input: 10_000,
    cached: 0,
    output: 1_000,
    requests: 1,
};

/// Go on with a stronger model
///
/// Where a run asks, this is the answer. Where a session of a gateway runs, its further calls go to the other model, in the
/// same conversation, until it is moved back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck escalate                          (the newest question)
  unstuck escalate k3v9                     (the question of this run, or its session while it runs)
  unstuck escalate k3v9 --to claude-opus-5-5 --yes
  unstuck escalate k3v9-2                   (its second session)
  unstuck escalate k3v9 --back              (to the model that it had)

Exit codes: as of `unstuck exec` for answers; 0 when it was moved; 1 when there is no such session, it is at the most
capable model, it was declined, or inside a supervised agent; 2 where nobody can be asked and --yes was not given.")]
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
    if let Some(inside) = supervised_agent() {
        return Err(refused(
            format!(
                "this runs inside a supervised agent ({inside}), and agents do not choose what is spent on them"
            ),
            "run it in your own terminal",
        ));
    }
    let now = clock::now().at;
    let meant = runtime::block_on(Meant::find(id, session))?;
    let (from, to) = meant.models(args, config.catalog())?;
    let cost = config.catalog().difference(&from, &to, meant.tokens);
    show(&meant, (&from, &to), &cost, out)?;
    if !args.yes && !agrees(out)? {
        return Err(refused("nothing was changed", "--yes does not ask"));
    }
    let change = EscalationRecord {
        from_model: from,
        to_model: to.clone(),
        reason: EscalationReason::Manual,
        timestamp: now,
        cost_estimate: cost.usd(),
    };
    let event = ModelEscalated {
        session: Some(meant.session.id.clone()),
        change,
    };
    runtime::block_on(async {
        let redactor = Arc::new(environment::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let append = Append::new(meant.run.id.clone(), now, [Event::from(event)]);
        store
            .append(append)
            .await
            .map_err(crate::store::explained)?;
        store.close().await.map_err(crate::store::explained)
    })?;
    writeln!(out, "its calls go to {to} from now on")?;
    Ok(ExitCode::SUCCESS)
}

/// The session that is meant.
struct Meant {
    run: RunView,
    session: SessionView,
    /// The model in use, as far as is known.
    model: Option<String>,
    /// The model that it had before it was moved.
    before: Option<String>,
    /// What its calls used so far.
    tokens: Tokens,
}

impl Meant {
    async fn find(id: &str, session: &Session<'_>) -> Result<Self> {
        let (letters, number) = match id.rsplit_once('-') {
            Some((run, number)) if number.parse::<u32>().is_ok() => (run, Some(number)),
            _ => (id, None),
        };
        let history = History::open(session.store).await?;
        let run = history.find(Some(letters)).await?;
        let events = history.events(&run.id).await?;
        let mut sessions = SessionView::all(&events);
        if let Some(number) = number {
            let id = format!("{}-{number}", run.id);
            sessions.retain(|one| one.id.as_str() == id);
        }
        sessions.retain(|one| one.finished.is_none());
        let found = match (sessions.len(), sessions.pop()) {
            (1, Some(found)) => found,
            (0, _) => {
                return Err(refused(
                    format!("no session of run {} is going on", run.id.short()),
                    "`unstuck runs` lists the runs; a finished one is not moved",
                ));
            }
            (_, last) => {
                let ids = sessions.iter().chain(&last).map(|one| one.id.as_str());
                return Err(refused(
                    format!("run {} has several sessions", run.id.short()),
                    format!("one of {}", ids.collect::<Vec<_>>().join(", ")),
                ));
            }
        };
        let (asked, tokens) = used(session, &found).await?;
        let moves = moves(&events, &found);
        Ok(Self {
            model: moves
                .last()
                .map(|one| one.to_model.clone())
                .or(asked)
                .or(found.model.clone()),
            before: moves.first().map(|one| one.from_model.clone()),
            run,
            session: found,
            tokens,
        })
    }

    /// From which model to which.
    fn models(&self, args: &EscalateArgs, catalog: &Catalog) -> Result<(String, String)> {
        let unknown = || {
            refused(
                "nothing is known of the model of this session yet",
                "wait for its first call, or name one with --to",
            )
        };
        if args.back {
            let (Some(from), Some(to)) = (&self.model, &self.before) else {
                return Err(refused(
                    "this session was not moved",
                    "`unstuck escalate ID` moves it to a stronger model",
                ));
            };
            return match from == to {
                true => Err(refused(
                    "this session is back at its model",
                    "nothing is to be done",
                )),
                false => Ok((from.clone(), to.clone())),
            };
        }
        match (&args.to, &self.model) {
            (Some(to), Some(from)) if to == from => Err(refused(
                format!("this session uses {to} already"),
                "nothing is to be done",
            )),
            (Some(to), from) => {
                let from = from.clone().unwrap_or_else(|| "unknown".to_owned());
                Ok((from, to.clone()))
            }
            (None, None) => Err(unknown()),
            (None, Some(from)) => match catalog.next(from) {
                Ok(to) => Ok((from.clone(), to.to_owned())),
                Err(NoModel::AtTheTop) => Err(refused(
                    format!("Already at most capable model: {from}"),
                    "--to names any other; [[models.ladder]] says what comes after what",
                )),
                Err(why) => Err(refused(
                    format!("there is no stronger model after {from}: {why}"),
                    "--to names one; [[models.ladder]] says what comes after what",
                )),
            },
        }
    }
}

/// The changes of a session's model that count: those since it was last moved back.
fn moves<'e>(events: &'e [Recorded], session: &SessionView) -> Vec<&'e EscalationRecord> {
    let mut moves: Vec<&EscalationRecord> = Vec::new();
    for recorded in events {
        let Event::ModelEscalated(moved) = &recorded.event else {
            continue;
        };
        if moved.session.as_ref().is_some_and(|id| *id != session.id) {
            continue;
        }
        let own = moves.first().map(|first| first.from_model.as_str());
        match own == Some(moved.change.to_model.as_str()) {
            true => moves.clear(),
            false => moves.push(&moved.change),
        }
    }
    moves
}

/// The model of the newest call, and what all of them used.
async fn used(session: &Session<'_>, of: &SessionView) -> Result<(Option<String>, Tokens)> {
    let store = crate::store::open_existing(session.store).await?;
    let calls = match &store {
        Some(store) => calls(store, of).await?,
        None => Vec::new(),
    };
    let model = calls.iter().find_map(|call| call.asked_model.clone());
    let mut sum = Tokens::default();
    for tokens in calls.iter().filter_map(|call| call.tokens) {
        sum.input += tokens.input;
        sum.cached += tokens.cached;
        sum.output += tokens.output;
        sum.requests += 1;
    }
    let sum = match sum.requests {
        0 => USUAL,
        _ => sum,
    };
    Ok((model, sum))
}

async fn calls(store: &Store, of: &SessionView) -> Result<Vec<unstuck_core::event::CallRecord>> {
    let filter = CallFilter {
        session: Some(of.id.clone()),
        ..CallFilter::default()
    };
    let calls = store
        .calls(&filter)
        .await
        .map_err(crate::store::explained)?;
    Ok(calls.into_iter().map(|call| call.record).collect())
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
