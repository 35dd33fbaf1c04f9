//! `unstuck cost`: usage and cost of the LLM API calls that went through a gateway.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use unstuck_core::duration;
use unstuck_core::money::{known_cost, round_usd};
use unstuck_store::{CostGroupBy, CostSummary, SpendingQuery};

use crate::call_rendering::{cost_text, short_number};
use crate::command_context::CommandContext;
use crate::output::{BOLD, DIM, Output};
use crate::project_lookup::{abbreviate_home, project_at};
use crate::run_history::RunHistory;
use crate::sanitized_text::printable;
use crate::{async_runtime, clock};

/// Show the cost of API calls: calls, tokens and money, grouped by day or another key
///
/// Counts calls through a gateway (that of `unstuck serve`, or those of `exec` and `run`). Tokens and cost include
/// what agents report. If the price of a model is unknown, lists its calls as calls of unknown price. Days are in UTC.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck cost
  unstuck cost --by model --since 7d
  unstuck cost --by run --project . --since 24h
  unstuck cost --by day --json | jq '.[] | [.id, .cost_usd]'")]
pub(crate) struct CostArgs {
    /// Group the results by this key
    #[arg(long, value_enum, default_value_t, value_name = "KEY")]
    by: CostDimension,

    /// Only calls within this period, such as 7d; rounded to whole hours
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    since: Option<Duration>,

    /// Only calls of the project that this directory belongs to
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum CostDimension {
    /// By day, in UTC
    #[default]
    Day,
    /// By project
    Project,
    /// By run
    Run,
    /// By session: an agent's conversation, or a gateway client
    Session,
    /// By the model that answered
    Model,
    /// By upstream
    Upstream,
}

impl CostDimension {
    const fn group_by(self) -> CostGroupBy {
        match self {
            Self::Day => CostGroupBy::Day,
            Self::Project => CostGroupBy::Project,
            Self::Run => CostGroupBy::Run,
            Self::Session => CostGroupBy::Session,
            Self::Model => CostGroupBy::Model,
            Self::Upstream => CostGroupBy::Upstream,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Day => "day (UTC)",
            Self::Project => "project",
            Self::Run => "run",
            Self::Session => "session",
            Self::Model => "model",
            Self::Upstream => "upstream",
        }
    }

    /// Returns the display name of a group.
    fn name(self, id: &str) -> String {
        match (self, id) {
            (Self::Project, "") => "(no project)".to_owned(),
            (Self::Model | Self::Upstream, "") => "(none)".to_owned(),
            (Self::Project, id) => printable(&abbreviate_home(id)),
            (_, id) => printable(id),
        }
    }
}

pub(crate) fn run(args: &CostArgs, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let now = clock::now().at;
    let query = SpendingQuery {
        group_by: args.by.group_by(),
        since: args.since.map(|time| now.before(time)),
        until: None,
        project: args.project.as_deref().map(project_at).transpose()?,
    };
    let lines = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.spending(&query).await
    })?;
    if args.json {
        return out.write_json(&lines.iter().map(as_json).collect::<Vec<_>>());
    }
    if lines.is_empty() {
        let narrowed = args.since.is_some() || args.project.is_some();
        let nothing = if narrowed {
            "No API calls match."
        } else {
            "No API calls. Only calls through a gateway are counted."
        };
        writeln!(out, "{nothing}")?;
        return Ok(());
    }
    table(args.by, &lines, out)
}

fn as_json(spent: &CostSummary) -> Value {
    json!({
        "id": spent.id,
        "calls": spent.calls,
        "recovered": spent.recovered,
        "failed": spent.failed,
        "api_attempts": spent.tries,
        "input_tokens": spent.input_tokens,
        "cached_tokens": spent.cached_tokens,
        "output_tokens": spent.output_tokens,
        "cost_usd": known_cost(spent.cost_usd, spent.unpriced).map(round_usd),
        "unknown_price": spent.unpriced,
    })
}

fn table(by: CostDimension, lines: &[CostSummary], out: &mut Output) -> Result<()> {
    let names: Vec<_> = lines.iter().map(|line| by.name(&line.id)).collect();
    let widths = names.iter().map(|name| name.chars().count());
    let width = widths.chain([by.title().len(), 5]).max().unwrap_or(0);
    writeln!(
        out,
        "{DIM}{:<width$}  {:>8}  {:>9}  {:>7}  {:>8}  {:>8}  {:>8}  cost{DIM:#}",
        by.title(),
        "calls",
        "recovered",
        "failed",
        "in",
        "cached",
        "out",
    )?;
    for (line, name) in lines.iter().zip(&names) {
        writeln!(out, "{}", row(name, width, line))?;
    }
    if lines.len() > 1 {
        let all = row("total", width, &total(lines));
        writeln!(out, "{BOLD}{all}{BOLD:#}")?;
    }
    Ok(())
}

fn row(name: &str, width: usize, spent: &CostSummary) -> String {
    format!(
        "{name:<width$}  {:>8}  {:>9}  {:>7}  {:>8}  {:>8}  {:>8}  {}",
        spent.calls,
        spent.recovered,
        spent.failed,
        short_number(spent.input_tokens),
        short_number(spent.cached_tokens),
        short_number(spent.output_tokens),
        cost_text(spent),
    )
}

fn total(lines: &[CostSummary]) -> CostSummary {
    let mut all = CostSummary::default();
    for line in lines {
        all.calls += line.calls;
        all.recovered += line.recovered;
        all.failed += line.failed;
        all.tries += line.tries;
        all.input_tokens += line.input_tokens;
        all.cached_tokens += line.cached_tokens;
        all.output_tokens += line.output_tokens;
        all.cost_usd += line.cost_usd;
        all.unpriced += line.unpriced;
    }
    all
}
