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
    let run = runtime::block_on(find(args, session))?;
    let told = if args.quiet { Told::Nothing } else { Told::All };
    match supervise::resume(session, config, run.id.clone(), told) {
        Err(error) if waits(&error, &run) => {
            runtime::block_on(answer(session, &run))?;
            writeln!(
                out,
                "run {} goes on in the process that waits for it",
                run.id
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(explained(error, &run)),
        Ok(finished) => exec::tell(&finished, args.json, out),
    }
}

async fn find(args: &ResumeArgs, session: &Session<'_>) -> Result<RunView> {
    let history = History::open(session.store).await?;
    if let Some(letters) = &args.run {
        return history.find(Some(letters)).await;
    }
    history.newest(&UNFINISHED).await?.ok_or_else(|| {
        refused(
            "there is nothing to resume: no run is unfinished",
            "`unstuck runs` lists what there is",
        )
    })
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
