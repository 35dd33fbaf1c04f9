//! `unstuck show`: the story of one run, attempt by attempt.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use unstuck_core::duration::Human;
use unstuck_core::episode::{AttemptOutcome, AttemptStory, Timeline};

use super::runs;
use crate::history::History;
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::place::homely;
use crate::show_text::{one_line, signed_usd, wrapped};
use crate::supervise::Session;
use crate::{clock, completion, runtime};

/// Where the facts about an attempt begin, behind their labels.
const INDENT: usize = 19;

/// Show a run: what was tried, what failed, what was decided and why, what it cost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck show            (the newest run)
  unstuck show k3v9
  unstuck show --json | jq '.attempts[].diagnosis.kind'")]
pub(crate) struct ShowArgs {
    /// The run: the first letters of its id [default: the newest]
    #[arg(value_name = "RUN", add = completion::runs())]
    run: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ShowArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let timeline = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let run = history.find(args.run.as_deref()).await?;
        history.timeline(&run.id).await
    })?;
    if args.json {
        return out.json(&as_json(&timeline)?);
    }
    show(&timeline, session, out)
}

/// The run at a glance, with its attempts in full.
fn as_json(timeline: &Timeline) -> Result<Value> {
    let mut whole = serde_json::to_value(&timeline.view)?;
    if let Some(fields) = whole.as_object_mut() {
        let count = fields.insert("attempts".into(), json!(timeline.attempts));
        fields.insert("attempt_count".into(), count.unwrap_or(Value::Null));
        fields.insert("cwd".into(), json!(timeline.run.cwd));
    }
    Ok(whole)
}

/// Tells the story to a person.
pub(crate) fn show(timeline: &Timeline, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = &timeline.view;
    let style = runs::style(run.status);
    let before = run.id.as_str().len() + run.status.name().len() + 4;
    let room = out.columns().map(|columns| columns.saturating_sub(before));
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}  {style}{}{style:#}  {}",
        run.id,
        run.status,
        one_line(&run.command.join(" "), room.unwrap_or(100).max(20))
    )?;
    let mut facts = vec![
        homely(&run.project),
        format!("policy {}", run.policy),
        format!("began {}", clock::shown(run.started)),
    ];
    facts.extend(run.model.clone());
    if run.cost_usd > 0.0 {
        facts.push(format!("${:.4}", run.cost_usd));
    }
    writeln!(out, "{DIM}{}{DIM:#}", facts.join(" · "))?;
    for attempt in &timeline.attempts {
        writeln!(out)?;
        tell(attempt, out)?;
    }
    writeln!(out)?;
    ending(timeline, session, out)
}

fn tell(attempt: &AttemptStory, out: &mut Output) -> Result<()> {
    let took = attempt
        .duration_ms
        .map(|millis| format!(" after {}", Human(Duration::from_millis(millis))))
        .unwrap_or_default();
    let style = match attempt.outcome {
        AttemptOutcome::Succeeded => GREEN,
        AttemptOutcome::Failed => RED,
        AttemptOutcome::Running | AttemptOutcome::Interrupted => YELLOW,
    };
    let changes = match attempt.changes.as_slice() {
        [] => String::new(),
        changes => format!(" {DIM}({}){DIM:#}", changes.join(", ")),
    };
    writeln!(
        out,
        "{DIM}{}{DIM:#}  attempt {}{changes}  {style}{}{style:#}{took}{}",
        clock::shown(attempt.started),
        attempt.number,
        attempt.outcome.name(),
        cost(attempt),
    )?;
    details(attempt, out)
}

fn cost(attempt: &AttemptStory) -> String {
    let cost = attempt.used.cost_usd.filter(|usd| *usd > 0.0);
    cost.map(|usd| format!(" · ${usd:.4}")).unwrap_or_default()
}

fn details(attempt: &AttemptStory, out: &mut Output) -> Result<()> {
    let columns = out.columns();
    let mut line = |label: &str, text: &str| {
        if text.is_empty() {
            return Ok(());
        }
        let line = format!("          {DIM}{label:<8}{DIM:#} {text}");
        let wrapped = columns.map(|columns| wrapped(&line, columns, INDENT));
        writeln!(out, "{}", wrapped.unwrap_or(line))
    };
    if let Some(diagnosis) = &attempt.diagnosis {
        let sure = f64::from(diagnosis.confidence) * 100.0;
        line(
            "kind",
            &format!(
                "{} ({sure:.0} % sure, rule {})",
                diagnosis.kind, diagnosis.evidence.rule
            ),
        )?;
        line("seen", &one_line(&diagnosis.evidence.line, 160))?;
    }
    for wrong in &attempt.validation_errors {
        line("wrong", &one_line(wrong, 160))?;
    }
    if let Some(made) = &attempt.decision {
        line("decided", &made.decision.reason)?;
    }
    if let Some(change) = &attempt.model_change {
        let more = change
            .cost_estimate
            .map(|usd| format!(", about {}", signed_usd(usd)));
        line(
            "model",
            &format!(
                "{} → {}{}",
                change.from_model,
                change.to_model,
                more.unwrap_or_default()
            ),
        )?;
    }
    if let Some(wait) = &attempt.wait {
        line("waited", &format!("until {}", clock::shown(wait.until)))?;
    }
    if let Some(asked) = &attempt.escalation {
        line("asked", &format!("a person ({})", asked.trigger))?;
    }
    if let Some(resolved) = &attempt.resolved {
        let note = one_line(&resolved.note, 120);
        line("answer", format!("{} {note}", resolved.method).trim())?;
    }
    Ok(())
}

fn ending(timeline: &Timeline, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = &timeline.view;
    let short = run.id.short();
    let Some(finished) = run.finished else {
        let until = run
            .until
            .map(|until| format!(" until {}", clock::shown(until)));
        let style = runs::style(run.status);
        writeln!(
            out,
            "{style}{}{style:#}{}",
            run.status,
            until.unwrap_or_default()
        )?;
        return Ok(());
    };
    let style = runs::style(run.status);
    let took = Human(finished.since(run.started));
    writeln!(
        out,
        "{style}{}{style:#} after {took}: {}",
        run.status,
        run.reason.as_deref().unwrap_or_default()
    )?;
    let mut next = vec![format!("explain {short}"), format!("logs {short}")];
    if !run.status.is_final() {
        next.push(format!("resume {short}"));
    }
    let next: Vec<_> = next.iter().map(|words| session.line(words)).collect();
    let line = next.join("  ·  ");
    let fits = line.chars().count() <= out.columns().unwrap_or(80);
    // A command that is broken in two cannot be copied.
    let line = if fits { line } else { next.join("\n") };
    writeln!(out, "{DIM}{line}{DIM:#}")?;
    Ok(())
}
