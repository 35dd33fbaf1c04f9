//! Pending escalations as text: one block each, in 80 columns.

use std::io::Write;

use anyhow::Result;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::{sanitize, sanitize_command};
use unstuck_core::escalation::{EscalationAnswer, offered_options};
use unstuck_core::event::EscalationKind;
use unstuck_store::EscalationRow;

use super::json::answer_command;
use crate::clock::{format_age, format_time};
use crate::command_context::CommandContext;
use crate::output::{BOLD, DIM, Output, YELLOW};
use crate::project_lookup::abbreviate_home;
use crate::text_columns::{truncate, width, wrap_words};

/// Width used if the terminal width is unknown.
pub(super) const DEFAULT_WIDTH: usize = 80;
/// Maximum width of a command shown next to the reason.
const MAX_COMMAND: usize = 24;
/// Maximum number of lines of a reason.
const MAX_REASON_LINES: usize = 3;

/// Prints the escalations, newest first.
pub(super) fn print(
    questions: &[EscalationRow],
    now: Timestamp,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let columns = out.columns().unwrap_or(DEFAULT_WIDTH).min(DEFAULT_WIDTH);
    for (at, question) in questions.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        print_block(question, now, columns, session, out)?;
    }
    if questions.is_empty() {
        writeln!(out, "Inbox empty.")?;
    } else {
        let line = session.unstuck_command("inbox ID");
        writeln!(
            out,
            "\n{DIM}{line} shows a request in full, with all answers{DIM:#}"
        )?;
    }
    Ok(())
}

fn print_block(
    question: &EscalationRow,
    now: Timestamp,
    columns: usize,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let asked = &question.request;
    let (age, kind) = (format_age(question.at, now), asked.escalation_kind.label());
    let head = format!("{age}  {}  {kind}  ", asked.id);
    let room = columns.saturating_sub(width(&head));
    let project = truncate(&sanitize(&abbreviate_home(&question.project)), room);
    writeln!(
        out,
        "{DIM}{age}{DIM:#}  {BOLD}{}{BOLD:#}  {YELLOW}{kind}{YELLOW:#}  {project}",
        asked.id
    )?;
    let room = columns.saturating_sub(2);
    if !asked.details.activity.is_empty() {
        writeln!(
            out,
            "  {BOLD}{}{BOLD:#}",
            truncate(&sanitize(&asked.details.activity), room)
        )?;
    }
    let reason = wrap_words(&sanitize(&asked.reason), room);
    for (at, line) in reason.iter().take(MAX_REASON_LINES).enumerate() {
        let is_cut = at + 1 == MAX_REASON_LINES && reason.len() > MAX_REASON_LINES;
        let line = if is_cut {
            format!("{line} …")
        } else {
            line.clone()
        };
        writeln!(out, "  {}", truncate(&line, room))?;
    }
    for text in [proposal(question), evidence(question), expiry(question)]
        .into_iter()
        .flatten()
    {
        writeln!(out, "  {DIM}{}{DIM:#}", truncate(&text, room))?;
    }
    writeln!(out, "  {}", answer_hint(question, room, session))?;
    Ok(())
}

/// Returns the command line of the most likely answer and the names of the others.
fn answer_hint(question: &EscalationRow, room: usize, session: &CommandContext<'_>) -> String {
    let mut offered = offered_options(&question.request)
        .into_iter()
        .map(|choice| choice.answer);
    let Some(first) = offered.next() else {
        return String::new();
    };
    let line = answer_command(first, &question.request.id, session);
    let others: Vec<_> = offered.map(EscalationAnswer::name).collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!("or {}", others.join(", "))
    };
    if width(&line) + 1 + width(&others) <= room {
        format!("{line} {DIM}{others}{DIM:#}")
    } else {
        // Lines to copy are never truncated.
        format!("{line}\n  {DIM}{}{DIM:#}", truncate(&others, room))
    }
}

fn proposal(question: &EscalationRow) -> Option<String> {
    let command = question.request.details.command.as_deref()?;
    Some(format!("proposed: {}", sanitize_command(command)))
}

fn expiry(question: &EscalationRow) -> Option<String> {
    let deadline = question.request.details.deadline?;
    let at = format_time(deadline.at);
    Some(format!("without an answer: {} at {at}", deadline.answer))
}

fn evidence(question: &EscalationRow) -> Option<String> {
    let evidence = &question.request.details.evidence;
    (!evidence.is_empty()).then(|| format!("evidence: {}", sanitize(evidence.trim())))
}

/// Summarizes an escalation in one line: the running command, the proposed one, the evidence, or the reason.
pub(super) fn headline(question: &EscalationRow) -> String {
    let asked = &question.request;
    let about = match (&asked.details.command, asked.details.evidence.trim()) {
        (Some(command), _) => sanitize_command(command),
        (None, "") => sanitize(&asked.reason),
        (None, evidence) => sanitize(evidence),
    };
    match asked.details.activity.trim() {
        "" => about,
        doing => format!("{}: {about}", truncate(&sanitize(doing), MAX_COMMAND)),
    }
}

/// Returns a short label for the kind of escalation.
pub(super) fn kind_label(kind: EscalationKind) -> &'static str {
    match kind {
        EscalationKind::Hiccup => "blocked",
        EscalationKind::RecoveryApprovalRequired => "approval",
        EscalationKind::CostConfirmation => "cost",
        EscalationKind::Stuck => "loop",
    }
}
