//! What is shown after the scenes: one of them as a timeline, the sum, and where to go from there.

use std::io::Write;

use anyhow::{Context, Result};
use unstuck_core::episode::{Status, Timeline};
use unstuck_run::drive::Finished;

use crate::commands::show;
use crate::history::History;
use crate::output::{BOLD, DIM, GREEN, Output};
use crate::runtime;
use crate::session::Session;

/// Tells how the runs went and what to do next.
pub(super) fn tell(played: &[Finished], session: &Session<'_>, out: &mut Output) -> Result<()> {
    let timelines = runtime::block_on(read(played, session))?;
    let shown = timelines.iter().find(|one| changed_model(one));
    if let Some(timeline) = shown {
        writeln!(
            out,
            "\n{BOLD}Everything is kept.{BOLD:#} The second run again, as `unstuck show` tells it:\n"
        )?;
        show::show(timeline, session, out)?;
    }
    sum(&timelines, out)?;
    next(&timelines, session, out)
}

async fn read(played: &[Finished], session: &Session<'_>) -> Result<Vec<Timeline>> {
    let history = History::open(session.store).await?;
    let mut timelines = Vec::new();
    for finished in played {
        timelines.push(history.timeline(&finished.run).await?);
    }
    Ok(timelines)
}

fn changed_model(timeline: &Timeline) -> bool {
    let mut attempts = timeline.attempts.iter();
    attempts.any(|attempt| attempt.model_change.is_some())
}

fn sum(timelines: &[Timeline], out: &mut Output) -> Result<()> {
    let of = |status: Status| {
        timelines
            .iter()
            .filter(move |one| one.view.status == status)
    };
    let failures: u32 = timelines.iter().map(|one| one.view.error_count).sum();
    let solved: u32 = of(Status::Recovered).map(|one| one.view.error_count).sum();
    let asked = of(Status::AwaitingHuman).count();
    let questions = if asked == 1 { "question" } else { "questions" };
    writeln!(
        out,
        "\n{BOLD}{failures} failures{BOLD:#}, {GREEN}{solved} recovered{GREEN:#} without a person, {asked} {questions}."
    )?;
    Ok(())
}

fn next(timelines: &[Timeline], session: &Session<'_>, out: &mut Output) -> Result<()> {
    let open = timelines.iter().find(|one| !one.view.status.is_final());
    let open = open.or(timelines.last()).context("nothing was played")?;
    let short = open.view.id.short();
    writeln!(out, "\n{BOLD}Next{BOLD:#}")?;
    let commands = [
        (session.line(&format!("explain {short}")), "why it asked"),
        (
            session.line(&format!("resume {short}")),
            "answer: it is mended, go on",
        ),
        (
            "unstuck exec -- claude -p \"…\"".to_owned(),
            "your own agent: put `unstuck exec --` in front",
        ),
    ];
    for (command, meaning) in commands {
        writeln!(out, "  {DIM}# {meaning}{DIM:#}\n  {command}")?;
    }
    Ok(())
}
