//! `unstuck resume`: takes up a run that was cut off, stopped, or waited for a person.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use unstuck_core::episode::{RunView, Status};
use unstuck_core::redact::Redactor;
use unstuck_run::drive::{self, RunError};

use super::exec;
use crate::config::Config;
use crate::history::History;
use crate::output::Output;
use crate::report::refused;
use crate::supervise::{self, Session, Told};
use crate::{clock, completion, runtime};

/// Where there is something to take up again.
const UNFINISHED: [Status; 4] = [
    Status::Running,
    Status::Waiting,
    Status::AwaitingHuman,
    Status::Interrupted,
];

/// How many runs are tried where none is named.
const CANDIDATES: usize = 30;

/// Take up a run where it stopped: after a crash, after Ctrl-C, or when you have seen to what it asked for
///
/// A wait that is not over goes on; one that is over ends at once. An attempt that was cut off is made again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck resume          (the newest run that is not finished)
  unstuck resume k3v9

Exit codes: as of `unstuck exec`; 1 when there is nothing to resume.")]
pub(crate) struct ResumeArgs {
    /// The run: the first letters of its id [default: the newest unfinished one]
    #[arg(value_name = "RUN", add = completion::runs())]
    run: Option<String>,

    /// Say nothing but what the command says
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object about the run as the last line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(
    args: &ResumeArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let mut candidates = runtime::block_on(find(args, session))?
        .into_iter()
        .peekable();
    let mut first_refusal = None;
    while let Some(run) = candidates.next() {
        match resumed(&run, args, config, session, out) {
            // One that cannot be taken up again does not stand in the way of those that can.
            Err(error) if is_refusal(&error) && candidates.peek().is_some() => {
                first_refusal.get_or_insert((error, run));
            }
            Err(error) => {
                let (error, run) = first_refusal.unwrap_or((error, run));
                return Err(explained(error, &run));
            }
            done => return done,
        }
    }
    Err(refused(
        "there is nothing to resume: no run is unfinished",
        "`unstuck runs` lists what there is",
    ))
}

fn resumed(
    run: &RunView,
    args: &ResumeArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let told = if args.quiet { Told::Nothing } else { Told::All };
    match supervise::resume(session, config, run.id.clone(), told) {
        Err(error) if waits(&error, run) => {
            runtime::block_on(answer(session, run))?;
            writeln!(
                out,
                "run {} goes on in the process that waits for it",
                run.id
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
        Ok(finished) => exec::tell(&finished, args.json, out),
    }
}

/// The run that is named, or all that could be meant, the likeliest first.
async fn find(args: &ResumeArgs, session: &Session<'_>) -> Result<Vec<RunView>> {
    let history = History::open(session.store).await?;
    match &args.run {
        Some(letters) => Ok(vec![history.find(Some(letters)).await?]),
        None => history.newest(&UNFINISHED, CANDIDATES).await,
    }
}

fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::NotResumable { .. }))
}

/// Whether another process waits for a person to see to it.
fn waits(error: &anyhow::Error, run: &RunView) -> bool {
    let driven = matches!(error.downcast_ref(), Some(RunError::Driven { .. }));
    driven && run.status == Status::AwaitingHuman
}

async fn answer(session: &Session<'_>, run: &RunView) -> Result<()> {
    let redactor = std::sync::Arc::new(Redactor::new([]));
    let store = crate::store::open(session.store, redactor).await?;
    drive::answer(&store, &run.id, clock::now().at).await?;
    store.close().await?;
    Ok(())
}

/// A refusal with what to do next.
fn explained(error: anyhow::Error, run: &RunView) -> anyhow::Error {
    let short = run.id.short();
    match error.downcast_ref::<RunError>() {
        Some(RunError::NotResumable { .. }) => refused(
            error.to_string(),
            format!("`unstuck show {short}` tells how it went; `unstuck exec` starts anew"),
        ),
        Some(RunError::Driven {
            pid, host, seen, ..
        }) => refused(
            format!(
                "run {} is being driven by process {pid} on {host} (last seen {})",
                run.id,
                clock::shown(*seen)
            ),
            format!("`unstuck logs -f {short}` shows what it does"),
        ),
        _ => error,
    }
}
