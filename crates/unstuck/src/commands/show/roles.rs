//! The roles of a pipeline, iteration by iteration, each with its attempts.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::duration::Human;
use unstuck_core::episode::{SessionView, Timeline};
use unstuck_core::event::{Part, PipelineStarted, RunStarted};
use unstuck_run::folder;

use super::attempt::tell;
use crate::history::Listed;
use crate::named::{Named, part_name, plays};
use crate::output::{BOLD, DIM, Output};
use crate::place::homely;
use crate::run_words::style;

/// The sessions that are meant, as JSON, each with the file of its output.
pub(super) fn as_json(timeline: &Timeline, named: Named<'_>, run: &Listed) -> Result<Value> {
    let mut all = Vec::new();
    for session in meant(timeline, named) {
        let mut told = serde_json::to_value(session)?;
        let state = run.session_status(session);
        told["status"] = json!(state.state);
        told["state"] = json!(state);
        let path = output_file(timeline, session);
        told["output_file"] = json!(path.map(|path| path.display().to_string()));
        all.push(told);
    }
    Ok(Value::Array(all))
}

/// The sessions of the role that is named, or all.
fn meant<'t>(timeline: &'t Timeline, named: Named<'_>) -> impl Iterator<Item = &'t SessionView> {
    let of_role = move |session: &&SessionView| match (named.role, &session.part) {
        (Some(role), Some(part)) => plays(part, role),
        (Some(_), None) => false,
        (None, _) => true,
    };
    timeline.sessions.iter().filter(of_role)
}

/// Shows the roles that are meant, each with its attempts.
pub(super) fn show(
    run: &Listed,
    timeline: &Timeline,
    plan: &PipelineStarted,
    named: Named<'_>,
    out: &mut Output,
) -> Result<()> {
    let iterations: BTreeSet<_> = meant(timeline, named)
        .filter_map(|session| session.part.as_ref().map(|part| part.iteration))
        .collect();
    for iteration in iterations {
        if let Some(looping) = &plan.looping {
            let most = looping.max_iterations.max(iteration);
            writeln!(out, "\n{BOLD}── iteration {iteration} of {most} ──{BOLD:#}")?;
        }
        for session in meant(timeline, named) {
            match &session.part {
                Some(part) if part.iteration == iteration => {
                    role(run, timeline, session, part, out)?
                }
                _ => {}
            }
        }
    }
    not_begun(timeline, plan, named, out)
}

/// The name of a part on a line of its own, with its iteration where there are several.
pub(super) fn name(part: &Part, run: &RunStarted, out: &mut Output) -> Result<()> {
    let name = part_name(part, run);
    let loops = run.pipeline().is_some_and(|plan| plan.looping.is_some());
    match loops {
        true => writeln!(
            out,
            "{BOLD}{name}{BOLD:#}  {DIM}iteration {}{DIM:#}",
            part.iteration
        )?,
        false => writeln!(out, "{BOLD}{name}{BOLD:#}")?,
    }
    Ok(())
}

fn role(
    run: &Listed,
    timeline: &Timeline,
    session: &SessionView,
    part: &Part,
    out: &mut Output,
) -> Result<()> {
    let status = run.session_status(session).state;
    let (style, standing) = (style(status), status.name());
    let known = session.agent.iter().chain(&session.model);
    let mut facts: Vec<_> = known.cloned().collect();
    facts.push(match session.attempts {
        1 => "1 attempt".to_owned(),
        n => format!("{n} attempts"),
    });
    if let Some(finished) = session.finished {
        facts.push(Human(finished.since(session.started)).to_string());
    }
    match (session.cost_usd > 0.0, session.unpriced > 0) {
        (true, false) => facts.push(format!("${:.4}", session.cost_usd)),
        (true, true) => facts.push(format!("${:.4} + unknown", session.cost_usd)),
        (false, true) => facts.push("cost unknown".to_owned()),
        (false, false) => {}
    }
    writeln!(
        out,
        "\n{BOLD}{}{BOLD:#}  {style}{}{style:#}  {DIM}{}{DIM:#}",
        part_name(part, &timeline.run),
        standing,
        facts.join(" · ")
    )?;
    if let Some(path) = output_file(timeline, session) {
        writeln!(out, "{DIM}→ {}{DIM:#}", homely(&path.display().to_string()))?;
    }
    let own = timeline.attempts.iter();
    for attempt in own.filter(|attempt| attempt.session == session.id) {
        tell(attempt, out)?;
    }
    Ok(())
}

/// The file of a session's output, if it has one.
fn output_file(timeline: &Timeline, session: &SessionView) -> Option<PathBuf> {
    let part = session.part.as_ref().filter(|_| session.output.is_some())?;
    let run = folder::copies_of(Path::new(&timeline.view.project), &timeline.view.id);
    let instances = timeline.run.instances(Some(part));
    Some(folder::iteration_of(&run, part, instances).join("output.md"))
}

/// The roles that no session has played.
fn not_begun(
    timeline: &Timeline,
    plan: &PipelineStarted,
    named: Named<'_>,
    out: &mut Output,
) -> Result<()> {
    let played = |role: &str| {
        let mut parts = timeline.sessions.iter().filter_map(|one| one.part.as_ref());
        parts.any(|part| part.role == role)
    };
    let left = plan.roles.iter().filter(|role| !played(&role.id));
    let left: Vec<_> = left.map(|role| role.id.as_str()).collect();
    if named.role.is_none() && !left.is_empty() {
        writeln!(out, "\n{DIM}not run: {}{DIM:#}", left.join(", "))?;
    }
    Ok(())
}
