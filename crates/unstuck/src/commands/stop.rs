//! `unstuck stop`: stops an active run; it can be resumed afterwards.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use unstuck_core::views::{RunStatus, RunSummary};
use unstuck_store::{RunFilter, Store};

use crate::choice_prompt::ChoicePrompt;
use crate::command_context::CommandContext;
use crate::error_report::{error_with_hint, refusal};
use crate::output::Output;
use crate::project_lookup::current_project;
use crate::run_history::RunHistory;
use crate::run_stop::{self, StopError};
use crate::run_title::{is_gateway_client, run_title};
use crate::sanitized_text::truncate;
use crate::{async_runtime, clock, completion_candidates};

/// Time limit for a run to end; its processes get a grace period.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval for checking whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Stop an active run; you can resume it later
///
/// Same as Ctrl-C in the run's terminal: unstuck ends the run's processes, and `unstuck resume` continues the run
/// later.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck stop            (the active run of this project)
  unstuck stop k3v9
  unstuck stop --all      (every active run of this project)

Exit codes: 0 stopped; 1 no active run, several runs match, or inside a supervised agent.")]
pub(crate) struct StopArgs {
    /// Id prefix of the run [default: the only active run of this project]
    #[arg(value_name = "RUN", add = completion_candidates::runs())]
    run: Option<String>,

    /// Stop every active run of this project
    #[arg(long, conflicts_with = "run")]
    all: bool,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(
    args: &StopArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let runs = async_runtime::block_on(find(args, session))?;
    let mut still_ending = 0;
    for run in &runs {
        let (pid, ended) = async_runtime::block_on(stop(run, session))?;
        let short = run.id.short();
        if !ended {
            still_ending += 1;
            writeln!(out, "run {short} is still stopping (pid {pid})")?;
        } else if !args.quiet {
            let resume = session.unstuck_command(&format!("resume {short}"));
            writeln!(
                out,
                "stopped run {short} ({}) · {resume}",
                truncate(&run_title(run), 60)
            )?;
        }
        out.flush()?;
    }
    match still_ending {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(refusal(
            "some runs have not stopped yet",
            "`unstuck status` lists active runs",
        )),
    }
}

/// Returns the selected runs.
async fn find(args: &StopArgs, session: &CommandContext<'_>) -> Result<Vec<RunSummary>> {
    let history = RunHistory::open(session.store).await?;
    if let Some(letters) = &args.run {
        return Ok(vec![history.find(Some(letters)).await?]);
    }
    let filter = RunFilter {
        project: Some(current_project()),
        status: vec![
            RunStatus::Running,
            RunStatus::Waiting,
            RunStatus::AwaitingHuman,
        ],
        ..RunFilter::default()
    };
    let listed = history.run_entries(&filter, clock::now().at).await?;
    let active = listed.into_iter().filter(|one| one.supervised);
    let active = active
        .map(|one| one.run)
        .filter(|run| !is_gateway_client(run));
    let mut active: Vec<_> = active.collect();
    match active.len() {
        0 => Err(refusal(
            "no active run in this project",
            "`unstuck status` lists active runs of all projects; `unstuck stop RUN` stops one",
        )),
        1 => Ok(active),
        _ if args.all => Ok(active),
        _ => {
            let line =
                |run: &RunSummary| format!("{}  {}", run.id.short(), truncate(&run_title(run), 70));
            let candidates = ChoicePrompt {
                what: "active runs in this project",
                lines: active.iter().map(line).collect(),
                hint: "specify one: `unstuck stop RUN`; `--all` stops all of them".to_owned(),
            };
            Ok(vec![active.swap_remove(candidates.choose()?)])
        }
    }
}

/// Stops a run and waits for its end; returns its process id and whether it has ended.
async fn stop(run: &RunSummary, session: &CommandContext<'_>) -> Result<(u32, bool)> {
    let store = crate::store::open_existing(session.store).await?;
    let store =
        store.ok_or_else(|| error_with_hint("no run history yet", "`unstuck exec` creates it"))?;
    let short = run.id.short();
    let told = run_stop::stop_run(&store, session.store, &run.id).await;
    let pid = told.map_err(|error| {
        let hint = match &error {
            StopError::NotActive(_) if run.status.is_final() => {
                format!("`unstuck show {short}` shows its result")
            }
            StopError::NotActive(_) => {
                format!("`unstuck resume {short}` continues it, `unstuck abort {short}` aborts it")
            }
            _ => "`unstuck status` lists active runs".to_owned(),
        };
        refusal(error.to_string(), hint)
    })?;
    let ended = has_ended(run, &store).await?;
    store.close().await?;
    Ok((pid, ended))
}

async fn has_ended(run: &RunSummary, store: &Store) -> Result<bool> {
    let until_released = async {
        while run_stop::lease_of(store, &run.id).await?.is_some() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(true)
    };
    let ended = tokio::time::timeout(STOP_TIMEOUT, until_released).await;
    ended.unwrap_or(Ok(false))
}
