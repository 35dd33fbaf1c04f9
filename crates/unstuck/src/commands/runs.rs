//! `unstuck runs`: lists runs and their status.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use unstuck_core::views::{RunStatus, RunSummary};
use unstuck_core::{FailureKind, Timestamp, duration};
use unstuck_store::RunFilter;

use crate::command_context::CommandContext;
use crate::output::{DIM, Output};
use crate::project_lookup::{abbreviate_home, project_at};
use crate::run_history::{RunEntry, RunHistory};
use crate::run_title::{run_title, status_style};
use crate::text_columns::{fit_with_facts, width};
use crate::{async_runtime, clock, completion_candidates};

/// Minimum width of the command column before other columns are dropped.
const MIN_COMMAND_WIDTH: usize = 16;

/// List runs, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck runs
  unstuck runs --status awaiting_human,waiting
  unstuck runs --status crashed       (after a crash or reboot; see `unstuck resume --all`)
  unstuck runs --project . --since 24h
  unstuck runs --kind rate_limit --json")]
pub(crate) struct RunsArgs {
    /// Filter by status: running, waiting, awaiting_human, succeeded, recovered, failed, interrupted, crashed
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "STATUS,…",
        value_parser = status_parser(),
        hide_possible_values = true
    )]
    status: Vec<RunStatus>,

    /// Only runs of the project that this directory belongs to
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Only runs whose newest failure is of this kind
    #[arg(long, value_name = "KIND", add = completion_candidates::kinds())]
    kind: Option<FailureKind>,

    /// Only runs started within this period, such as 24h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    since: Option<Duration>,

    /// Maximum number of results
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

fn status_parser() -> impl TypedValueParser<Value = RunStatus> {
    PossibleValuesParser::new(RunStatus::ALL.map(RunStatus::name))
        .try_map(|name| RunStatus::from_name(&name).ok_or("unknown status"))
}

pub(crate) fn run(args: &RunsArgs, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let now = clock::now().at;
    let project = args.project.as_deref().map(project_at).transpose()?;
    let filter = RunFilter {
        project,
        status: args.status.clone(),
        kind: args.kind,
        since: args.since.map(|time| now.before(time)),
        limit: Some(args.limit),
        ..RunFilter::default()
    };
    let runs = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.run_entries(&filter, now).await
    })?;
    if args.json {
        return out.write_json(&runs);
    }
    if runs.is_empty() {
        writeln!(out, "{}", args.empty_message())?;
    }
    let columns = out.columns();
    for run in &runs {
        writeln!(out, "{}", run_line(run, now, columns))?;
    }
    Ok(())
}

impl RunsArgs {
    /// Returns the message for an empty list.
    fn empty_message(&self) -> &'static str {
        let narrowed = !self.status.is_empty()
            || self.project.is_some()
            || self.kind.is_some()
            || self.since.is_some()
            || self.limit == 0;
        if narrowed {
            "No runs match."
        } else {
            "No runs. Start one with `unstuck exec -- COMMAND`, or try `unstuck demo`."
        }
    }
}

/// Renders a run on one line, fitted to the terminal width.
fn run_line(listed: &RunEntry, now: Timestamp, columns: Option<usize>) -> String {
    let run = &listed.run;
    let (id, style, status) = (run.id.short(), status_style(run.status), run.status.name());
    let ago = format!("{:>8}  ", clock::format_age(run.started, now));
    let kind = run.kind.filter(|_| run.status != RunStatus::Succeeded);
    let kind = kind.map(|kind| format!(" {kind}")).unwrap_or_default();
    let facts = [
        format!("{kind}{}", attempts(run)),
        format!("  {}", abbreviate_home(&run.project)),
    ];
    let before = width(&format!("{id}  {status:<14} "));
    let room = columns.map(|columns| columns.saturating_sub(before));
    // On a narrow terminal the command is more useful than the time.
    let ago = match room {
        Some(room) if room < width(&ago) + MIN_COMMAND_WIDTH => String::new(),
        _ => ago,
    };
    let room = room.map(|room| room.saturating_sub(width(&ago)));
    let (command, facts) = fit_with_facts(&run_title(run), &facts, MIN_COMMAND_WIDTH, room);
    format!("{id}  {style}{status:<14}{style:#} {DIM}{ago}{DIM:#}{command}{DIM}{facts}{DIM:#}")
}

fn attempts(run: &RunSummary) -> String {
    match run.attempts {
        0 | 1 => String::new(),
        n => format!(" · {n} attempts"),
    }
}
