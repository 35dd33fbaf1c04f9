//! `unstuck show`: the story of one run, attempt by attempt.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use unstuck_core::duration::Human;
use unstuck_core::episode::{AttemptOutcome, AttemptStory, Status, Timeline};
use unstuck_core::event::Excerpt;

use super::runs;
use crate::history::{History, Listed, Named};
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::place::homely;
use crate::show_text::{command_line, last_lines, one_line, round_costs, signed_usd, wrapped};
use crate::supervise::Session;
use crate::{clock, completion, runtime};

/// Where the facts about an attempt begin, behind their labels.
const INDENT: usize = 19;
/// How much of each stream is shown of one attempt.
const LAST_LINES: usize = 20;

/// Show a run: what was tried, what failed, what was decided and why, what it cost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck show            (the newest run)
  unstuck show k3v9
  unstuck show k3v9/2     (attempt 2, with the end of its output)
  unstuck show --json | jq '.attempts[].diagnosis.kind'")]
pub(crate) struct ShowArgs {
    /// The run, and the attempt behind a slash if only one is meant [default: the newest run]
    #[arg(value_name = "RUN[/ATTEMPT]", add = completion::runs())]
    run: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ShowArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let named = Named::read(args.run.as_deref())?;
    let (timeline, driven) = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let run = history.find(named.letters).await?;
        let driven = history.drives(&run.id, clock::now().at).await?;
        anyhow::Ok((history.timeline(&run.id).await?, driven))
    })?;
    let attempts = named.attempts(&timeline)?;
    if args.json {
        return out.json(&as_json(&timeline, &attempts, driven)?);
    }
    let run = Listed::of(&timeline, driven);
    match (named.attempt, attempts.as_slice()) {
        (Some(_), [attempt]) => show_attempt(&run, attempt, session, out),
        _ => show_all(&run, &timeline.attempts, session, out),
    }
}

/// The run at a glance, with the attempts that are meant in full.
fn as_json(timeline: &Timeline, attempts: &[&AttemptStory], driven: bool) -> Result<Value> {
    let mut whole = serde_json::to_value(&timeline.view)?;
    if let Some(fields) = whole.as_object_mut() {
        let count = fields.insert("attempts".into(), json!(attempts));
        fields.insert("attempt_count".into(), count.unwrap_or(Value::Null));
        fields.insert("cwd".into(), json!(timeline.run.cwd()));
        fields.insert("driven".into(), json!(driven));
    }
    round_costs(&mut whole);
    Ok(whole)
}

/// Tells the story of a run that this process has driven to its end.
pub(crate) fn show(timeline: &Timeline, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = Listed::of(timeline, true);
    show_all(&run, &timeline.attempts, session, out)
}

fn show_all(
    run: &Listed,
    attempts: &[AttemptStory],
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    head(run, out)?;
    for attempt in attempts {
        writeln!(out)?;
        tell(attempt, out)?;
    }
    writeln!(out)?;
    ending(run, session, out)
}

/// One attempt, with the end of what it wrote.
fn show_attempt(
    run: &Listed,
    attempt: &AttemptStory,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    head(run, out)?;
    writeln!(out)?;
    tell(attempt, out)?;
    if let Some(excerpt) = &attempt.excerpt {
        written(excerpt, out)?;
    }
    writeln!(out)?;
    let (short, number) = (run.run.id.short(), attempt.number);
    let mut next = vec![format!("logs {short} --attempt {number}")];
    if attempt.decision.is_some() {
        next.insert(0, format!("explain {short}/{number}"));
    }
    proposed(&next, session, out)
}

fn written(excerpt: &Excerpt, out: &mut Output) -> Result<()> {
    let streams = [
        ("standard output", &excerpt.stdout),
        ("standard error", &excerpt.stderr),
    ];
    for (name, text) in streams {
        let lines = last_lines(text, LAST_LINES);
        if lines.is_empty() {
            continue;
        }
        writeln!(out, "\n{DIM}── the end of its {name} ──{DIM:#}")?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn head(listed: &Listed, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let (style, standing) = (runs::style(run.status), listed.standing());
    let before = run.id.as_str().len() + standing.len() + 4;
    let room = out.columns().map(|columns| columns.saturating_sub(before));
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}  {style}{standing}{style:#}  {}",
        run.id,
        command_line(&run.command, room.unwrap_or(100).max(20))
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
    Ok(())
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

fn ending(listed: &Listed, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let (short, style) = (run.id.short(), runs::style(run.status));
    let Some(finished) = run.finished else {
        return unfinished(listed, session, out);
    };
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
    proposed(&next, session, out)
}

/// How a run stands that should go on by itself.
fn unfinished(listed: &Listed, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let style = runs::style(run.status);
    let until = run
        .until
        .map(|until| format!(" until {}", clock::shown(until)));
    let until = until.unwrap_or_default();
    if !listed.is_cut_off() {
        writeln!(out, "{style}{}{style:#}{until}", run.status)?;
        return Ok(());
    }
    let doing = match run.status {
        Status::AwaitingHuman => "waiting for a person",
        other => other.name(),
    };
    writeln!(
        out,
        "{style}cut off{style:#} while {doing}{until}: the process that drove it is gone"
    )?;
    let short = run.id.short();
    let next = [format!("resume {short}"), format!("logs {short}")];
    proposed(&next, session, out)
}

/// Commands that a person may want next.
fn proposed(next: &[String], session: &Session<'_>, out: &mut Output) -> Result<()> {
    let next: Vec<_> = next.iter().map(|words| session.line(words)).collect();
    let line = next.join("  ·  ");
    let fits = line.chars().count() <= out.columns().unwrap_or(80);
    // A command that is broken in two cannot be copied.
    let line = if fits { line } else { next.join("\n") };
    writeln!(out, "{DIM}{line}{DIM:#}")?;
    Ok(())
}
