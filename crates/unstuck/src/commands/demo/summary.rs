//! Summary after the scenes: one timeline, totals and next steps.

use std::io::Write;

use anyhow::{Context, Result};
use unstuck_core::views::{RunStatus, RunTimeline};
use unstuck_run::runner::RunResult;

use crate::async_runtime;
use crate::command_context::CommandContext;
use crate::commands::show;
use crate::output::{BOLD, DIM, GREEN, Output};
use crate::run_history::RunHistory;

/// Prints the summary of all runs and the next steps.
pub(super) fn print_summary(
    played: &[RunResult],
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let timelines = async_runtime::block_on(read_timelines(played, session))?;
    let shown = timelines.iter().find(|one| has_model_switch(one));
    if let Some(timeline) = shown {
        writeln!(
            out,
            "\n{BOLD}Everything is recorded.{BOLD:#} The second run in `unstuck show`:\n"
        )?;
        show::show(timeline, session, out)?;
    }
    print_totals(&timelines, out)?;
    print_next_steps(&timelines, session, out)
}

async fn read_timelines(
    played: &[RunResult],
    session: &CommandContext<'_>,
) -> Result<Vec<RunTimeline>> {
    let history = RunHistory::open(session.store).await?;
    let mut timelines = Vec::new();
    for finished in played {
        timelines.push(history.timeline(&finished.run).await?);
    }
    Ok(timelines)
}

fn has_model_switch(timeline: &RunTimeline) -> bool {
    let mut attempts = timeline.attempts.iter();
    attempts.any(|attempt| attempt.model_switch.is_some())
}

fn print_totals(timelines: &[RunTimeline], out: &mut Output) -> Result<()> {
    let of = |status: RunStatus| {
        timelines
            .iter()
            .filter(move |one| one.summary.status == status)
    };
    let failures: u32 = timelines.iter().map(|one| one.summary.error_count).sum();
    let solved: u32 = of(RunStatus::Recovered)
        .map(|one| one.summary.error_count)
        .sum();
    let asked = of(RunStatus::AwaitingHuman).count();
    let requests = if asked == 1 { "request" } else { "requests" };
    writeln!(
        out,
        "\n{BOLD}{failures} failures{BOLD:#}, {GREEN}{solved} recovered{GREEN:#} automatically, {asked} pending {requests}."
    )?;
    Ok(())
}

fn print_next_steps(
    timelines: &[RunTimeline],
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let open = timelines.iter().find(|one| !one.summary.status.is_final());
    let open = open
        .or(timelines.last())
        .context("the demo ran no scenes")?;
    let short = open.summary.id.short();
    writeln!(out, "\n{BOLD}Next{BOLD:#}")?;
    let commands = [
        (
            session.unstuck_command(&format!("explain {short}")),
            "explain the pending request",
        ),
        (
            session.unstuck_command(&format!("resume {short}")),
            "mark as fixed and continue",
        ),
        (
            "unstuck exec -- claude -p \"…\"".to_owned(),
            "your own agent: prefix its command with `unstuck exec --`",
        ),
    ];
    for (command, meaning) in commands {
        writeln!(out, "  {DIM}# {meaning}{DIM:#}\n  {command}")?;
    }
    Ok(())
}
