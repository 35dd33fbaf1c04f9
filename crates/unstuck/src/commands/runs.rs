//! `unstuck runs`: what ran, what runs, and how it stands.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::episode::{RunView, Status};
use unstuck_core::{Kind, Timestamp, duration};
use unstuck_store::RunFilter;

use crate::history::{History, Listed};
use crate::output::{DIM, GREEN, Output, RED, YELLOW};
use crate::place::homely;
use crate::place::project_of;
use crate::show_text::one_line;
use crate::supervise::Session;
use crate::{clock, runtime};

/// List runs, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck runs
  unstuck runs --status awaiting_human,waiting
  unstuck runs --project . --since 24h
  unstuck runs --kind rate_limit --json")]
pub(crate) struct RunsArgs {
    /// Only those that stand at: running, waiting, awaiting_human, succeeded, recovered, failed, interrupted
    #[arg(long, value_delimiter = ',', value_name = "STATUS,…", value_parser = status)]
    status: Vec<Status>,

    /// Only those of the project that this folder belongs to
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,

    /// Only those whose newest failure is of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,

    /// Only those that began within this time, such as 24h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    since: Option<Duration>,

    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print them as a JSON array
    #[arg(long)]
    json: bool,
}

fn status(name: &str) -> Result<Status, String> {
    Status::named(name).ok_or_else(|| {
        let known: Vec<_> = Status::ALL.iter().map(|status| status.name()).collect();
        format!("there are {}", known.join(", "))
    })
}

pub(crate) fn run(args: &RunsArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let now = clock::now().at;
    let project = match &args.project {
        Some(folder) => {
            let folder = folder
                .canonicalize()
                .with_context(|| format!("cannot find the folder {}", folder.display()))?;
            Some(project_of(&folder).display().to_string())
        }
        None => None,
    };
    let filter = RunFilter {
        project,
        status: args.status.clone(),
        kind: args.kind,
        since: args.since.map(|time| before(now, time)),
        limit: Some(args.limit),
        ..RunFilter::default()
    };
    let runs = runtime::block_on(async {
        let history = History::open(session.store).await?;
        history.listed(&filter, now).await
    })?;
    if args.json {
        return out.json(&runs);
    }
    if runs.is_empty() {
        writeln!(
            out,
            "No runs. `unstuck exec -- COMMAND` makes one, `unstuck demo` shows how."
        )?;
    }
    for run in &runs {
        line(run, now, out)?;
    }
    Ok(())
}

fn before(now: Timestamp, time: Duration) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.millis().saturating_sub(millis))
}

fn line(listed: &Listed, now: Timestamp, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let style = style(run.status);
    let status = match listed.is_cut_off() {
        true => "cut off",
        false => run.status.name(),
    };
    let kind = run.kind.filter(|_| run.status != Status::Succeeded);
    let kind = kind.map(|kind| format!(" {kind}")).unwrap_or_default();
    let command = one_line(&run.command.join(" "), 60);
    writeln!(
        out,
        "{}  {style}{:<14}{style:#} {DIM}{:>8}{DIM:#}  {}{DIM}{kind}{}  {}{DIM:#}",
        run.id.short(),
        status,
        clock::ago(run.started, now),
        command,
        attempts(run),
        homely(&run.project),
    )?;
    Ok(())
}

fn attempts(run: &RunView) -> String {
    match run.attempts {
        0 | 1 => String::new(),
        n => format!(" · {n} attempts"),
    }
}

pub(crate) fn style(status: Status) -> anstyle::Style {
    match status {
        Status::Succeeded | Status::Recovered => GREEN,
        Status::Failed | Status::AwaitingHuman => RED,
        Status::Running | Status::Waiting | Status::Interrupted => YELLOW,
    }
}
