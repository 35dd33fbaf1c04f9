//! Renders one attempt: its result, diagnosis, decision and last output.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use unstuck_core::duration::HumanDuration;
use unstuck_core::event::OutputExcerpt;
use unstuck_core::views::{AttemptOutcome, AttemptView};

use crate::call_rendering;
use crate::clock;
use crate::output::{DIM, GREEN, Output, RED, YELLOW};
use crate::repair_rendering;
use crate::sanitized_text::{last_lines, one_line, signed_usd, wrap_words};

/// Column where the values begin, after the labels.
const INDENT: usize = 19;
/// Number of lines shown of each stream.
const LAST_LINES: usize = 20;

/// Prints the end of the output.
pub(super) fn print_excerpt(excerpt: &OutputExcerpt, out: &mut Output) -> Result<()> {
    let streams = [
        ("standard output", &excerpt.stdout),
        ("standard error", &excerpt.stderr),
    ];
    for (name, text) in streams {
        let lines = last_lines(text, LAST_LINES);
        if lines.is_empty() {
            continue;
        }
        writeln!(out, "\n{DIM}── end of {name} ──{DIM:#}")?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Prints the result of an attempt and its cause.
pub(super) fn print_attempt(attempt: &AttemptView, out: &mut Output) -> Result<()> {
    let took = attempt
        .duration_ms
        .map(|millis| format!(" after {}", HumanDuration(Duration::from_millis(millis))))
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
        clock::format_time(attempt.started),
        attempt.number,
        attempt.outcome.name(),
        cost_text(attempt),
    )?;
    print_details(attempt, out)
}

fn cost_text(attempt: &AttemptView) -> String {
    let cost = attempt.usage.cost_usd.filter(|usd| *usd > 0.0);
    cost.map(|usd| format!(" · ${usd:.4}")).unwrap_or_default()
}

fn print_details(attempt: &AttemptView, out: &mut Output) -> Result<()> {
    let columns = out.columns();
    let mut line = |label: &str, text: &str| {
        if text.is_empty() {
            return Ok(());
        }
        let line = format!("          {DIM}{label:<8}{DIM:#} {text}");
        let wrapped = columns.map(|columns| wrap_words(&line, columns, INDENT));
        writeln!(out, "{}", wrapped.unwrap_or(line))
    };
    if let Some(diagnosis) = &attempt.diagnosis {
        let sure = f64::from(diagnosis.confidence) * 100.0;
        line(
            "kind",
            &format!(
                "{} (confidence {sure:.0}%, rule {})",
                diagnosis.kind, diagnosis.evidence.rule
            ),
        )?;
        line("evidence", &one_line(&diagnosis.evidence.line, 160))?;
    }
    for told in call_rendering::call_lines(&attempt.calls) {
        line("call", &told)?;
    }
    for change in &attempt.gateway_model_switches {
        line(
            "model",
            &format!("{} → {}", change.from_model, change.to_model),
        )?;
    }
    for wrong in &attempt.validation_errors {
        line("wrong", &one_line(wrong, 160))?;
    }
    if let Some(made) = &attempt.decision {
        line("decision", &made.decision.reason)?;
    }
    if let Some(change) = &attempt.model_switch {
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
    for repair in &attempt.repairs {
        line("repair", &repair_rendering::outcome_line(repair))?;
    }
    if let Some(wait) = &attempt.wait {
        // The attempt may still be running, or was interrupted.
        let reread = wait.reread.map(|cost| format!("; then {cost}"));
        let reread = reread.unwrap_or_default();
        let until = clock::format_time(wait.until);
        line("wait", &format!("until {until}{reread}"))?;
    }
    if let Some(asked) = &attempt.escalation {
        line(
            "request",
            &format!("needs your input ({})", asked.escalation_kind.label()),
        )?;
    }
    if let Some(resolved) = &attempt.resolution {
        let note = one_line(&resolved.note, 120);
        let note = if note.is_empty() {
            note
        } else {
            format!(": {note}")
        };
        line("answer", &format!("{}{note}", resolved.summary()))?;
    }
    Ok(())
}
