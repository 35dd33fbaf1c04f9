//! `unstuck show`: shows one run attempt by attempt, or a pipeline role by role.

mod attempt;
mod pipeline_roles;

use std::io::Write;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use unstuck_core::duration::HumanDuration;
use unstuck_core::views::{AttemptView, RunStatus, RunTimeline};
use unstuck_store::CostSummary;

use self::attempt::{print_attempt, print_excerpt};
use crate::command_context::CommandContext;
use crate::output::{BOLD, DIM, Output};
use crate::project_lookup::abbreviate_home;
use crate::run_history::{RunEntry, RunHistory};
use crate::run_ref::RunRef;
use crate::run_title::{is_gateway_client, run_title, status_style};
use crate::sanitized_text::truncate;
use crate::{async_runtime, call_rendering, clock, completion_candidates, wait_state_text};

/// Show a run: attempts, failures, decisions with their reasons, and cost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck show            (the newest run)
  unstuck show k3v9
  unstuck show k3v9/2     (attempt 2, with the end of its output)
  unstuck show k3v9/tester      (a role of a pipeline, in all iterations)
  unstuck show k3v9/tester/2    (attempt 2 of its newest iteration)
  unstuck show --json | jq '.attempts[].diagnosis.kind'")]
pub(crate) struct ShowArgs {
    /// Run, optionally followed by /ROLE and /ATTEMPT [default: the newest run]
    #[arg(
        value_name = "RUN[/ROLE][/N]",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion_candidates::runs_and_roles()
    )]
    run: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ShowArgs, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let named = RunRef::parse(args.run.as_deref())?;
    let (timeline, supervised, spent) = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let (timeline, supervised) = history
            .timeline_and_supervision(named.run_prefix, clock::now().at)
            .await?;
        let spent = history.spent(&timeline.summary.id).await?;
        anyhow::Ok((timeline, supervised, spent))
    })?;
    let attempts = named.find_attempts(&timeline)?;
    if args.json {
        let run = RunEntry::new(timeline.summary.clone(), supervised);
        let mut whole = as_json(&timeline, named, &attempts, &run)?;
        whole["api_calls"] = call_rendering::as_json(&timeline, spent.as_ref())?;
        return out.write_json(&whole);
    }
    let run = RunEntry::new(timeline.summary.clone(), supervised);
    match (named.attempt, attempts.as_slice()) {
        (Some(_), [attempt]) => show_attempt(&run, &timeline, attempt, session, out),
        _ => {
            let shown = RunDetails {
                run: &run,
                timeline: &timeline,
                spent: spent.as_ref(),
            };
            show_all(&shown, named, session, out)
        }
    }
}

/// Renders the run with the full details of the selected attempts as JSON.
fn as_json(
    timeline: &RunTimeline,
    named: RunRef<'_>,
    attempts: &[&AttemptView],
    run: &RunEntry,
) -> Result<Value> {
    let mut whole = serde_json::to_value(run)?;
    if let Some(fields) = whole.as_object_mut() {
        let count = fields.insert("attempts".into(), json!(attempts));
        fields.insert("attempt_count".into(), count.unwrap_or(Value::Null));
        fields.insert("cwd".into(), json!(timeline.run.cwd()));
        fields.insert(
            "sessions".into(),
            pipeline_roles::as_json(timeline, named, run)?,
        );
        if let Some(plan) = timeline.run.pipeline() {
            fields.insert("config_path".into(), json!(plan.config_path));
        }
    }
    Ok(whole)
}

/// Shows a run that this process has supervised to its end.
pub(crate) fn show(
    timeline: &RunTimeline,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let run = RunEntry::new(timeline.summary.clone(), true);
    let shown = RunDetails {
        run: &run,
        timeline,
        spent: None,
    };
    show_all(&shown, RunRef::default(), session, out)
}

/// Data shown about a run.
struct RunDetails<'a> {
    run: &'a RunEntry,
    timeline: &'a RunTimeline,
    /// Usage of its calls as counted by the gateway.
    spent: Option<&'a CostSummary>,
}

fn show_all(
    shown: &RunDetails<'_>,
    named: RunRef<'_>,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let RunDetails {
        run,
        timeline,
        spent,
    } = shown;
    print_header(run, timeline, out)?;
    match timeline.run.pipeline() {
        Some(plan) => pipeline_roles::show(run, timeline, plan, named, out)?,
        None => {
            for attempt in &timeline.attempts {
                writeln!(out)?;
                print_attempt(attempt, out)?;
            }
        }
    }
    print_unattached_calls(timeline, out)?;
    writeln!(out)?;
    if let Some(spent) = spent {
        writeln!(out, "{}", call_rendering::summary_line(spent))?;
    }
    print_end(run, session, out)
}

/// Prints the calls that belong to no attempt.
fn print_unattached_calls(timeline: &RunTimeline, out: &mut Output) -> Result<()> {
    if !timeline.calls.is_empty() || !timeline.model_switches.is_empty() {
        writeln!(out)?;
    }
    for told in call_rendering::call_lines(&timeline.calls) {
        writeln!(out, "{told}")?;
    }
    for change in &timeline.model_switches {
        writeln!(out, "model {} → {}", change.from_model, change.to_model)?;
    }
    Ok(())
}

/// Shows one attempt with the end of its output.
fn show_attempt(
    run: &RunEntry,
    timeline: &RunTimeline,
    attempt: &AttemptView,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    print_header(run, timeline, out)?;
    writeln!(out)?;
    if let Some(part) = &attempt.part {
        pipeline_roles::print_role_heading(part, &timeline.run, out)?;
    }
    print_attempt(attempt, out)?;
    if let Some(excerpt) = &attempt.excerpt {
        print_excerpt(excerpt, out)?;
    }
    writeln!(out)?;
    let (short, index) = (run.run.id.short(), attempt.index);
    let mut next = vec![format!("logs {short} --attempt {index}")];
    if attempt.decision.is_some() {
        next.insert(0, format!("explain {short}/{index}"));
    }
    print_next_commands(&next, session, out)
}

fn print_header(listed: &RunEntry, timeline: &RunTimeline, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let (style, standing) = (status_style(run.status), run.status.name());
    let before = run.id.as_str().len() + standing.len() + 4;
    let room = out.columns().map(|columns| columns.saturating_sub(before));
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}  {style}{standing}{style:#}  {}",
        run.id,
        truncate(&run_title(run), room.unwrap_or(100).max(20))
    )?;
    let plan = timeline.run.pipeline();
    let config = plan.and_then(|plan| plan.config_path.as_deref());
    let mut facts = vec![
        abbreviate_home(config.unwrap_or(&run.project)),
        format!("policy {}", run.policy),
        format!("started {}", clock::format_time(run.started)),
    ];
    // The roles of a pipeline have their own models.
    facts.extend(run.model.clone().filter(|_| plan.is_none()));
    match (run.cost_usd > 0.0, run.unpriced_count > 0) {
        (true, false) => facts.push(format!("${:.4}", run.cost_usd)),
        (true, true) => facts.push(format!("${:.4} + unknown", run.cost_usd)),
        (false, true) => facts.push("cost unknown".to_owned()),
        (false, false) => {}
    }
    writeln!(out, "{DIM}{}{DIM:#}", facts.join(" · "))?;
    Ok(())
}

fn print_end(listed: &RunEntry, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let (short, style) = (run.id.short(), status_style(run.status));
    let Some(finished) = run.finished else {
        return print_unfinished(listed, session, out);
    };
    let took = HumanDuration(finished.since(run.started));
    writeln!(
        out,
        "{style}{}{style:#} after {took}: {}",
        run.status,
        run.reason.as_deref().unwrap_or_default()
    )?;
    if is_gateway_client(run) {
        return print_next_commands(&["cost --by session".to_owned()], session, out);
    }
    let mut next = vec![format!("explain {short}"), format!("logs {short}")];
    if !run.status.is_final() {
        next.push(format!("resume {short}"));
    }
    print_next_commands(&next, session, out)
}

/// Prints the state of a run that has not ended.
fn print_unfinished(
    listed: &RunEntry,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let run = &listed.run;
    let (status, style) = (run.status, status_style(run.status));
    let wait = wait_state_text::wait_text(&listed.state, clock::now().at);
    if status != RunStatus::Crashed {
        let wait = wait.map(|wait| format!(" {wait}")).unwrap_or_default();
        writeln!(out, "{style}{status}{style:#}{wait}")?;
        return Ok(());
    }
    if is_gateway_client(run) {
        writeln!(out, "{style}{status}{style:#}: its gateway process is gone")?;
        return Ok(());
    }
    let doing = match wait {
        Some(wait) => format!(" while waiting {wait}"),
        None => String::new(),
    };
    writeln!(
        out,
        "{style}{status}{style:#}{doing}: supervising process is gone"
    )?;
    let short = run.id.short();
    let next = [format!("resume {short}"), format!("logs {short}")];
    print_next_commands(&next, session, out)
}

/// Prints useful next commands.
fn print_next_commands(
    next: &[String],
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let next: Vec<_> = next
        .iter()
        .map(|words| session.unstuck_command(words))
        .collect();
    let line = next.join("  ·  ");
    let fits = line.chars().count() <= out.columns().unwrap_or(80);
    // A wrapped command could not be copied.
    let line = if fits { line } else { next.join("\n") };
    writeln!(out, "{DIM}{line}{DIM:#}")?;
    Ok(())
}
