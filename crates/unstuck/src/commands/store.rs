//! `unstuck store`: shows, checks and prunes the run database.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use unstuck_core::event::{Event, RunId};
use unstuck_core::{RunSummary, Timestamp, duration};
use unstuck_run::blobs::BlobStore;
use unstuck_run::run_dir;
use unstuck_run::worktree::SnapshotStore;
use unstuck_store::{
    EventFilter, ExportError, IntegrityFinding, MaintenanceReport, MaintenanceTask, RunFilter,
    Store, StoreLocation, StoreOptions,
};

use crate::error_report::{error_with_hint, refusal};
use crate::output::{BOLD, GREEN, Output, YELLOW};
use crate::project_lookup::project_at;
use crate::run_supervision::state_dir;
use crate::store::with_hint as told;
use crate::{async_runtime, clock, completion_candidates, project_setting_changes};

/// Manage the run database
///
/// The newest events may be in a second file whose name ends in -wal. Copy both, or run `unstuck store vacuum` first to
/// merge them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck store path
  unstuck store check
  unstuck store export --run k3v9x0 > run.jsonl
  unstuck store prune --older-than 30d && unstuck store vacuum")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Check the database for damage
    #[command(after_help = "Example:\n  unstuck store check")]
    Check(CheckArgs),
    /// Print the path of the database
    #[command(after_help = "Example:\n  sqlite3 \"$(unstuck store path)\" .schema")]
    Path,
    /// Reclaim disk space
    #[command(
        after_help = "Example:\n  unstuck store prune --older-than 30d && unstuck store vacuum"
    )]
    Vacuum,
    Export(ExportArgs),
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Print events as JSON lines, oldest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck store export > all.jsonl
  unstuck store export --run k3v9x0
  unstuck store export --event attempt_failed --since 7d | jq .diagnosis.kind")]
struct ExportArgs {
    /// Only events of the run with this id prefix
    #[arg(long, value_name = "ID", add = completion_candidates::runs())]
    run: Option<String>,

    /// Only events of the project that this directory belongs to
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Only events with this name (repeatable)
    #[arg(
        long,
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(Event::NAMES),
        hide_possible_values = true
    )]
    event: Vec<String>,

    /// Only events within this period, such as 24h or 7d
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
}

/// Delete old finished runs, but keep their statistics
///
/// Never deletes runs that are active, waiting or resumable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck store prune --older-than 30d")]
struct PruneArgs {
    /// Minimum age since the run finished
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    older_than: Duration,
}

impl StoreArgs {
    /// True if something is deleted.
    pub(crate) fn is_destructive(&self) -> bool {
        match self.command {
            StoreCommand::Vacuum | StoreCommand::Prune(_) => true,
            StoreCommand::Check(_) | StoreCommand::Path | StoreCommand::Export(_) => false,
        }
    }
}

pub(crate) fn run(args: &StoreArgs, location: &StoreLocation, out: &mut Output) -> Result<()> {
    if let StoreCommand::Path = args.command {
        writeln!(out, "{location}")?;
        return Ok(());
    }
    async_runtime::block_on(async {
        let opened = Store::open_existing(location, StoreOptions::default()).await;
        let Some(store) = opened.map_err(told)? else {
            return report_no_store(&args.command, location, out);
        };
        let done = run_command(&args.command, &store, location, out).await;
        let closed = store.close().await.map_err(told);
        done.and(closed)
    })
}

/// Reports a missing store as an empty history, not as an error.
fn report_no_store(
    command: &StoreCommand,
    location: &StoreLocation,
    out: &mut Output,
) -> Result<()> {
    match command {
        StoreCommand::Export(_) => Ok(()),
        StoreCommand::Check(CheckArgs { json: true }) => out.write_json(&[(); 0]),
        _ => Ok(writeln!(out, "no run history yet: {location}")?),
    }
}

async fn run_command(
    command: &StoreCommand,
    store: &Store,
    location: &StoreLocation,
    out: &mut Output,
) -> Result<()> {
    let task = match command {
        StoreCommand::Path => return Ok(()),
        StoreCommand::Export(args) => return export(store, args, out).await,
        StoreCommand::Check(_) => MaintenanceTask::Check,
        StoreCommand::Vacuum => MaintenanceTask::Vacuum,
        StoreCommand::Prune(args) => MaintenanceTask::Prune(timestamp_before(args.older_than)),
    };
    let json = matches!(command, StoreCommand::Check(CheckArgs { json: true }));
    if let MaintenanceTask::Prune(before) = task {
        let report = prune(store, location, before).await?;
        return print_prune_report(&report, location, out);
    }
    match store.maintain(task).await.map_err(told)? {
        MaintenanceReport::Checked { findings, .. } if json => {
            out.write_json(&findings)?;
            check_findings(&findings, location, out)
        }
        report => print_prune_report(&report, location, out),
    }
}

/// Deletes old runs and their files next to the store.
async fn prune(
    store: &Store,
    location: &StoreLocation,
    before: Timestamp,
) -> Result<MaintenanceReport> {
    let runs = async || store.runs(&RunFilter::default()).await.map_err(told);
    let all = runs().await?;
    let report = store
        .maintain(MaintenanceTask::Prune(before))
        .await
        .map_err(told)?;
    let left = runs().await?;
    let is_left = |run: &RunSummary| left.iter().any(|one| one.id == run.id);
    let state = state_dir(location);
    for run in all.iter().filter(|run| !is_left(run)) {
        // A file that cannot be removed is harmless.
        let _ = run_dir::delete_run_files(&state, &run.id);
        if run.roles.is_none() {
            continue;
        }
        // A deleted project has no snapshots left.
        if let Ok(snapshots) = SnapshotStore::open(Path::new(&run.project), &run.id, &state) {
            let _ = snapshots.delete_all();
        }
    }
    let mut used = BTreeSet::new();
    for run in left
        .iter()
        .filter(|run| run.roles.is_some() || !run.status.is_final())
    {
        let events = store.load(&run.id).await.map_err(told)?;
        used.extend(
            events
                .into_iter()
                .filter_map(|recorded| match recorded.event {
                    Event::SessionFinished(end) => end.output,
                    Event::OutputReused(reused) => Some(reused.output),
                    event => project_setting_changes::settings_hash_in(&event),
                }),
        );
    }
    BlobStore::in_state_dir(&state).remove_unused(&used, before);
    Ok(report)
}

fn print_prune_report(
    report: &MaintenanceReport,
    location: &StoreLocation,
    out: &mut Output,
) -> Result<()> {
    match report {
        MaintenanceReport::Checked {
            findings,
            runs,
            events,
        } => {
            for IntegrityFinding {
                subject: id,
                problem,
            } in findings
            {
                writeln!(out, "{YELLOW}{id}{YELLOW:#}  {problem}")?;
            }
            check_findings(findings, location, out)?;
            writeln!(
                out,
                "{GREEN}ok{GREEN:#}: {location}: {}, {}",
                pluralize(*runs, "run"),
                pluralize(*events, "event")
            )?;
        }
        MaintenanceReport::Vacuumed { before, after } => {
            let (before, after) = (megabytes(*before), megabytes(*after));
            writeln!(out, "{BOLD}{after} MB{BOLD:#} (was {before} MB)")?;
        }
        MaintenanceReport::Pruned { runs, events, kept } => {
            writeln!(
                out,
                "deleted {BOLD}{}{BOLD:#} with {}",
                pluralize(*runs, "run"),
                pluralize(*events, "event")
            )?;
            if *kept > 0 {
                writeln!(
                    out,
                    "kept {} not finished yet",
                    pluralize(*kept, "older run")
                )?;
            }
        }
    }
    Ok(())
}

/// Returns an error if there are findings.
fn check_findings(
    findings: &[IntegrityFinding],
    location: &StoreLocation,
    out: &mut Output,
) -> Result<()> {
    out.finish()?;
    let message = match findings.len() {
        0 => return Ok(()),
        1 => format!("1 problem in {location}"),
        count => format!("{count} problems in {location}"),
    };
    Err(error_with_hint(
        message,
        "back up the file first; `unstuck store export` prints all readable events",
    ))
}

async fn export(store: &Store, args: &ExportArgs, out: &mut Output) -> Result<()> {
    let filter = EventFilter {
        run: match &args.run {
            Some(prefix) => Some(find_run(store, prefix).await?),
            None => None,
        },
        project: args.project.as_deref().map(project_at).transpose()?,
        names: args.event.clone(),
        since: args.since.map(timestamp_before),
        ..EventFilter::default()
    };
    match store.export_events(&filter, out).await {
        Ok(_) => Ok(()),
        Err(ExportError::Store(error)) => Err(told(error)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the only run with this id prefix.
async fn find_run(store: &Store, prefix: &str) -> Result<RunId> {
    let filter = RunFilter {
        prefix: Some(prefix.to_owned()),
        limit: Some(2),
        ..RunFilter::default()
    };
    let mut found = store.runs(&filter).await.map_err(told)?;
    match (found.pop(), found.pop()) {
        (Some(run), None) => Ok(run.id),
        (None, _) => Err(refusal(
            format!("run `{prefix}` not found"),
            "`unstuck runs` lists all runs",
        )),
        (Some(one), Some(other)) => Err(refusal(
            format!("run id `{prefix}` is ambiguous"),
            format!("use more characters: {} or {}", one.id, other.id),
        )),
    }
}

/// Returns the current time minus an age.
fn timestamp_before(age: Duration) -> Timestamp {
    clock::now().at.before(age)
}

fn pluralize(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
