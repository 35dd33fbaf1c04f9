//! `unstuck approve` and `unstuck reject`: a person's word about a repair that waits for it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use unstuck_core::episode::{RunView, Status};
use unstuck_core::guard::show;
use unstuck_core::redact::Redactor;
use unstuck_run::drive::{Announcer, OpenRepair, Scribe};
use unstuck_store::RunFilter;

use super::always;
use super::preview::Proposed;
use super::resume::{self, Taken};
use crate::config::Config;
use crate::history::History;
use crate::notifying::Notifying;
use crate::output::{BOLD, DIM, Output};
use crate::pipeline_plan::Wanted;
use crate::repair_words::proposer;
use crate::report::{hinted, refused};
use crate::supervise::{Session, Told};
use crate::{clock, completion, runtime, trusting};

/// How many runs are looked at where none is named.
const CANDIDATES: usize = 50;

/// Allow the repair that a run waits with, and go on
///
/// Exactly what was shown is run, once, in the sandbox; then what failed is tried again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck approve                 (the newest question about a repair)
  unstuck approve k3v9
  unstuck approve k3v9 --always   (also adds it to auto_approve of the project's unstuck.toml)

Exit codes: as of `unstuck exec`; 1 when there is no such question, or inside a supervised agent.")]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    about: About,

    /// Add this very command to auto_approve of the project's configuration
    #[arg(long)]
    always: bool,

    /// Say nothing but what the command says
    #[arg(long, short)]
    quiet: bool,
}

/// Refuse the repair that a run waits with, and go on without it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck reject
  unstuck reject k3v9 --note \"wrong folder\"")]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    about: About,

    /// Say nothing but what the command says
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Args)]
struct About {
    /// The question or its run: the first letters of its id [default: the newest]
    #[arg(value_name = "ID", add = completion::runs())]
    id: Option<String>,

    /// Why, for those who read the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
}

pub(crate) fn approve(
    args: &ApproveArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let (run, open) = runtime::block_on(find(&args.about, session))?;
    let proposed = &open.repair.proposed;
    if !args.quiet {
        let folder = proposed
            .working_dir
            .as_deref()
            .unwrap_or("the project's root");
        writeln!(out, "{BOLD}{}{BOLD:#}", show(&proposed.command))?;
        let by = proposer(proposed.by);
        writeln!(out, "{DIM}proposed by {by}, in {}{DIM:#}", show(folder))?;
    }
    let note = args.about.note.clone();
    runtime::block_on(with_store(session, &run, async |scribe| {
        Ok(open
            .approve(scribe, &run.id, &note, clock::now().at)
            .await?)
    }))?;
    if args.always {
        let said = always::write(Path::new(&run.project), &open, &note)?;
        writeln!(out, "{said}")?;
    }
    go_on(&run, args.quiet, config, session, out)
}

pub(crate) fn reject(
    args: &RejectArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let (run, open) = runtime::block_on(find(&args.about, session))?;
    let note = args.about.note.clone();
    runtime::block_on(with_store(session, &run, async |scribe| {
        Ok(open.reject(scribe, &run.id, &note, clock::now().at).await?)
    }))?;
    go_on(&run, args.quiet, config, session, out)
}

async fn with_store(
    session: &Session<'_>,
    run: &RunView,
    act: impl AsyncFnOnce(&Scribe<'_>) -> Result<()>,
) -> Result<()> {
    let redactor = std::sync::Arc::new(Redactor::new([]));
    let store = crate::store::open(session.store, redactor).await?;
    let notifying = Notifying::of_project(&run.project, session);
    let scribe = Scribe {
        store: &store,
        announcer: notifying.as_ref().map(|hooks| hooks as &dyn Announcer),
    };
    let done = act(&scribe).await;
    store.close().await?;
    done
}

/// The run goes on here, or in the process that waits for it.
fn go_on(
    run: &RunView,
    quiet: bool,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let driven = runtime::block_on(async {
        let history = History::open(session.store).await?;
        history.drives(&run.id, clock::now().at).await
    })?;
    if driven {
        writeln!(
            out,
            "run {} goes on in the process that waits for it",
            run.id
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let taken = Taken {
        accept_changes: false,
        restart: &[],
        wanted: Wanted::default(),
        told: if quiet { Told::Nothing } else { Told::All },
        json: false,
    };
    resume::first_of(vec![run.clone()], &taken, config, session, out)
}

/// What a repair that waits for an answer would run, by the id of the question or its run; none if it is no such id.
pub(crate) fn waiting(id: &str, session: &Session<'_>) -> Result<Option<Proposed>> {
    let is_id = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_id {
        return Ok(None);
    }
    runtime::block_on(async {
        let history = History::open(session.store).await?;
        let letters = id.split('-').next().unwrap_or(id);
        let filter = RunFilter {
            prefix: Some(letters.to_owned()),
            limit: Some(2),
            ..RunFilter::default()
        };
        let [run] = &history.runs(&filter).await?[..] else {
            return Ok(None);
        };
        let mut open = OpenRepair::all(&history.events(&run.id).await?);
        if id.contains('-') {
            open.retain(|one| one.asked.id.starts_with(id));
        }
        Ok(open.pop().map(|one| {
            let proposed = one.repair.proposed;
            Proposed {
                command: proposed.command,
                project: Some(PathBuf::from(&run.project)),
                working_dir: proposed.working_dir,
                timeout: Duration::from_secs(proposed.timeout_seconds.into()),
            }
        }))
    })
}

/// The question that is meant, with its run.
async fn find(about: &About, session: &Session<'_>) -> Result<(RunView, OpenRepair)> {
    if let Some(why) = trusting::inside_an_agent() {
        return Err(refused(
            format!("only a person can answer: {why}"),
            "answer in a terminal of your own",
        ));
    }
    let history = History::open(session.store).await?;
    let waiting = [Status::AwaitingHuman, Status::Running, Status::Waiting];
    let candidates = match &about.id {
        // A question has the id of its run, and a number behind it.
        Some(id) => vec![
            history
                .find(Some(id.split('-').next().unwrap_or(id)))
                .await?,
        ],
        None => history.newest(&waiting, CANDIDATES).await?,
    };
    for run in candidates {
        let events = history.events(&run.id).await?;
        let mut open = OpenRepair::all(&events);
        if let Some(id) = about.id.as_deref().filter(|id| id.contains('-')) {
            open.retain(|one| one.asked.id.starts_with(id));
        }
        match (open.len(), open.pop()) {
            (1, Some(one)) => return Ok((run, one)),
            (0, _) => {}
            (_, last) => {
                let ids = open.iter().chain(&last).map(|one| one.asked.id.clone());
                return Err(refused(
                    format!("run {} waits with several questions", run.id.short()),
                    format!("one of {}", ids.collect::<Vec<_>>().join(", ")),
                ));
            }
        }
    }
    Err(match &about.id {
        Some(id) => refused(
            format!("no repair of `{}` waits for an answer", show(id)),
            "`unstuck runs` lists what waits; `unstuck show` tells how it stands",
        ),
        None => hinted(
            "no repair waits for an answer",
            "`unstuck runs` lists what waits for other reasons; `unstuck resume` goes on",
        ),
    })
}
