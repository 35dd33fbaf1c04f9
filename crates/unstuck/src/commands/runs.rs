//! `unstuck runs`: what ran, what runs, and how it stands.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use unstuck_core::episode::{RunView, Status};
use unstuck_core::{Kind, Timestamp, duration};
use unstuck_store::RunFilter;

use crate::columns::{fitted, width};
use crate::history::{History, Listed};
use crate::output::{DIM, Output};
use crate::place::{homely, project_named};
use crate::run_words::{style, what};
use crate::session::Session;
use crate::{clock, completion, runtime};

/// What is left of a command before other facts give way.
const LEAST_COMMAND: usize = 16;

/// List runs, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck runs
  unstuck runs --status awaiting_human,waiting
  unstuck runs --status crashed       (what a crash or a reboot interrupted; `unstuck resume --all` resumes it)
  unstuck runs --project . --since 24h
  unstuck runs --kind rate_limit --json")]
pub(crate) struct RunsArgs {
    /// Filter by status: running, waiting, awaiting_human, succeeded, recovered, failed, interrupted, crashed
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "STATUS,…",
        value_parser = status(),
        hide_possible_values = true
    )]
    status: Vec<Status>,

    /// Only those of the project that this folder belongs to
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,

    /// Only those whose newest failure is of this kind
    #[arg(long, value_name = "KIND", add = completion::kinds())]
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

fn status() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::name))
        .try_map(|name| Status::named(&name).ok_or("there is no such status"))
}

pub(crate) fn run(args: &RunsArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let now = clock::now().at;
    let project = args.project.as_deref().map(project_named).transpose()?;
    let filter = RunFilter {
        project,
        status: args.status.clone(),
        kind: args.kind,
        since: args.since.map(|time| now.before(time)),
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
        writeln!(out, "{}", args.nothing())?;
    }
    let columns = out.columns();
    for run in &runs {
        writeln!(out, "{}", line(run, now, columns))?;
    }
    Ok(())
}

impl RunsArgs {
    /// What is said where nothing is listed.
    fn nothing(&self) -> &'static str {
        let narrowed = !self.status.is_empty()
            || self.project.is_some()
            || self.kind.is_some()
            || self.since.is_some()
            || self.limit == 0;
        match narrowed {
            true => "No runs match.",
            false => "No runs. `unstuck exec -- COMMAND` makes one, `unstuck demo` shows how.",
        }
    }
}

/// One run on one line; where a person reads it, as wide as the terminal is.
fn line(listed: &Listed, now: Timestamp, columns: Option<usize>) -> String {
    let run = &listed.run;
    let (id, style, status) = (run.id.short(), style(run.status), run.status.name());
    let ago = format!("{:>8}  ", clock::ago(run.started, now));
    let kind = run.kind.filter(|_| run.status != Status::Succeeded);
    let kind = kind.map(|kind| format!(" {kind}")).unwrap_or_default();
    let facts = [
        format!("{kind}{}", attempts(run)),
        format!("  {}", homely(&run.project)),
    ];
    let before = width(&format!("{id}  {status:<14} "));
    let room = columns.map(|columns| columns.saturating_sub(before));
    // On a narrow terminal the command says more than when it was.
    let ago = match room {
        Some(room) if room < width(&ago) + LEAST_COMMAND => String::new(),
        _ => ago,
    };
    let room = room.map(|room| room.saturating_sub(width(&ago)));
    let (command, facts) = fitted(&what(run), &facts, LEAST_COMMAND, room);
    format!("{id}  {style}{status:<14}{style:#} {DIM}{ago}{DIM:#}{command}{DIM}{facts}{DIM:#}")
}

fn attempts(run: &RunView) -> String {
    match run.attempts {
        0 | 1 => String::new(),
        n => format!(" · {n} attempts"),
    }
}
