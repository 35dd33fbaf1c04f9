//! Part of `unstuck show`: the roles of a pipeline run, by iteration, each with its attempts.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{RecordedPipelineSettings, RoleInstance, RunStarted};
use unstuck_core::views::{RunTimeline, SessionSummary};
use unstuck_run::run_dir;

use super::attempt::print_attempt;
use crate::output::{BOLD, DIM, Output};
use crate::project_lookup::abbreviate_home;
use crate::run_history::RunEntry;
use crate::run_ref::{RunRef, part_matches, part_name};
use crate::run_title::status_style;

/// Renders the selected sessions as JSON, each with its output file.
pub(super) fn as_json(timeline: &RunTimeline, named: RunRef<'_>, run: &RunEntry) -> Result<Value> {
    let mut all = Vec::new();
    for session in selected_sessions(timeline, named) {
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

/// Returns the sessions of the named role, or all.
fn selected_sessions<'t>(
    timeline: &'t RunTimeline,
    named: RunRef<'_>,
) -> impl Iterator<Item = &'t SessionSummary> {
    let of_role = move |session: &&SessionSummary| match (named.role, &session.part) {
        (Some(role), Some(part)) => part_matches(part, role),
        (Some(_), None) => false,
        (None, _) => true,
    };
    timeline.sessions.iter().filter(of_role)
}

/// Shows the selected roles, each with its attempts.
pub(super) fn show(
    run: &RunEntry,
    timeline: &RunTimeline,
    plan: &RecordedPipelineSettings,
    named: RunRef<'_>,
    out: &mut Output,
) -> Result<()> {
    let iterations: BTreeSet<_> = selected_sessions(timeline, named)
        .filter_map(|session| session.part.as_ref().map(|part| part.iteration))
        .collect();
    for iteration in iterations {
        if let Some(looping) = &plan.loop_settings {
            let most = looping.max_iterations.max(iteration);
            writeln!(out, "\n{BOLD}── iteration {iteration} of {most} ──{BOLD:#}")?;
        }
        for session in selected_sessions(timeline, named) {
            match &session.part {
                Some(part) if part.iteration == iteration => {
                    print_role(run, timeline, session, part, out)?
                }
                _ => {}
            }
        }
    }
    print_pending_roles(timeline, plan, named, out)
}

/// Prints the name of a role instance on its own line, with its iteration if there are several.
pub(super) fn print_role_heading(
    part: &RoleInstance,
    run: &RunStarted,
    out: &mut Output,
) -> Result<()> {
    let name = part_name(part, run);
    let loops = run
        .pipeline()
        .is_some_and(|plan| plan.loop_settings.is_some());
    if loops {
        writeln!(
            out,
            "{BOLD}{name}{BOLD:#}  {DIM}iteration {}{DIM:#}",
            part.iteration
        )?
    } else {
        writeln!(out, "{BOLD}{name}{BOLD:#}")?
    }
    Ok(())
}

fn print_role(
    run: &RunEntry,
    timeline: &RunTimeline,
    session: &SessionSummary,
    part: &RoleInstance,
    out: &mut Output,
) -> Result<()> {
    let status = run.session_status(session).state;
    let (style, standing) = (status_style(status), status.name());
    let known = session.agent.iter().chain(&session.model);
    let mut facts: Vec<_> = known.cloned().collect();
    facts.push(match session.attempts {
        1 => "1 attempt".to_owned(),
        n => format!("{n} attempts"),
    });
    if let Some(finished) = session.finished {
        facts.push(HumanDuration(finished.since(session.started)).to_string());
    }
    match (session.cost_usd > 0.0, session.unpriced_count > 0) {
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
        writeln!(
            out,
            "{DIM}→ {}{DIM:#}",
            abbreviate_home(&path.display().to_string())
        )?;
    }
    let own = timeline.attempts.iter();
    for attempt in own.filter(|attempt| attempt.session == session.id) {
        print_attempt(attempt, out)?;
    }
    Ok(())
}

/// Returns the output file of a session, if it has one.
fn output_file(timeline: &RunTimeline, session: &SessionSummary) -> Option<PathBuf> {
    let part = session.part.as_ref().filter(|_| session.output.is_some())?;
    let run = run_dir::project_copy_dir(Path::new(&timeline.summary.project), &timeline.summary.id);
    let instances = timeline.run.instances(Some(part));
    Some(run_dir::iteration_dir(&run, part, instances).join("output.md"))
}

/// Prints the roles that have not started yet.
fn print_pending_roles(
    timeline: &RunTimeline,
    plan: &RecordedPipelineSettings,
    named: RunRef<'_>,
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
