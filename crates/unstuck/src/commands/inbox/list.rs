//! The questions that wait, as text: a block for each, in 80 columns.

use std::io::Write;

use anyhow::Result;
use unstuck_core::Timestamp;
use unstuck_core::event::EscalationKind;
use unstuck_core::guard::{show, show_command};
use unstuck_core::question::{Answer, offered};
use unstuck_store::Question;

use super::told::command;
use crate::clock::{ago, shown};
use crate::columns::{cut, width, wrapped};
use crate::output::{BOLD, DIM, Output, YELLOW};
use crate::place::homely;
use crate::session::Session;

/// How wide it is where nobody says.
pub(super) const USUAL: usize = 80;
/// How much of a command stands beside why somebody is asked.
const SHORT_COMMAND: usize = 24;
/// How many lines a reason may take up.
const LONGEST_REASON: usize = 3;

/// Prints them, the newest first.
pub(super) fn print(
    questions: &[Question],
    now: Timestamp,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    let columns = out.columns().unwrap_or(USUAL).min(USUAL);
    for (at, question) in questions.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        block(question, now, columns, session, out)?;
    }
    if questions.is_empty() {
        writeln!(out, "Inbox empty.")?;
    } else {
        let line = session.line("inbox ID");
        writeln!(
            out,
            "\n{DIM}{line} shows one whole, with all answers{DIM:#}"
        )?;
    }
    Ok(())
}

fn block(
    question: &Question,
    now: Timestamp,
    columns: usize,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    let asked = &question.asked;
    let (age, kind) = (ago(question.at, now), asked.question.name());
    let head = format!("{age}  {}  {kind}  ", asked.id);
    let room = columns.saturating_sub(width(&head));
    let project = cut(&show(&homely(&question.project)), room);
    writeln!(
        out,
        "{DIM}{age}{DIM:#}  {BOLD}{}{BOLD:#}  {YELLOW}{kind}{YELLOW:#}  {project}",
        asked.id
    )?;
    let room = columns.saturating_sub(2);
    if !asked.shown.doing.is_empty() {
        writeln!(
            out,
            "  {BOLD}{}{BOLD:#}",
            cut(&show(&asked.shown.doing), room)
        )?;
    }
    let reason = wrapped(&show(&asked.reason), room);
    for (at, line) in reason.iter().take(LONGEST_REASON).enumerate() {
        let is_cut = at + 1 == LONGEST_REASON && reason.len() > LONGEST_REASON;
        let line = if is_cut {
            format!("{line} …")
        } else {
            line.clone()
        };
        writeln!(out, "  {}", cut(&line, room))?;
    }
    for text in [proposal(question), evidence(question), expiry(question)]
        .into_iter()
        .flatten()
    {
        writeln!(out, "  {DIM}{}{DIM:#}", cut(&text, room))?;
    }
    writeln!(out, "  {}", answers(question, room, session))?;
    Ok(())
}

/// The command line of the likeliest answer, and which others there are.
fn answers(question: &Question, room: usize, session: &Session<'_>) -> String {
    let mut offered = offered(&question.asked)
        .into_iter()
        .map(|choice| choice.answer);
    let Some(first) = offered.next() else {
        return String::new();
    };
    let line = command(first, &question.asked.id, session);
    let others: Vec<_> = offered.map(Answer::name).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("or {}", others.join(", ")),
    };
    match width(&line) + 1 + width(&others) <= room {
        true => format!("{line} {DIM}{others}{DIM:#}"),
        // A line to copy is never cut.
        false => format!("{line}\n  {DIM}{}{DIM:#}", cut(&others, room)),
    }
}

fn proposal(question: &Question) -> Option<String> {
    let command = question.asked.shown.command.as_deref()?;
    Some(format!("proposed: {}", show_command(command)))
}

fn expiry(question: &Question) -> Option<String> {
    let deadline = question.asked.shown.deadline?;
    let at = shown(deadline.at);
    Some(format!("without an answer: {} at {at}", deadline.answer))
}

fn evidence(question: &Question) -> Option<String> {
    let evidence = &question.asked.shown.evidence;
    (!evidence.is_empty()).then(|| format!("seen: {}", show(evidence.trim())))
}

/// What is asked, in one line: the command that was running, and the one that is proposed, what was seen, or why a person
/// is asked.
pub(super) fn gist(question: &Question) -> String {
    let asked = &question.asked;
    let about = match (&asked.shown.command, asked.shown.evidence.trim()) {
        (Some(command), _) => show_command(command),
        (None, "") => show(&asked.reason),
        (None, evidence) => show(evidence),
    };
    match asked.shown.doing.trim() {
        "" => about,
        doing => format!("{}: {about}", cut(&show(doing), SHORT_COMMAND)),
    }
}

/// What kind of question it is, in one short word.
pub(super) fn word(kind: EscalationKind) -> &'static str {
    match kind {
        EscalationKind::Hiccup => "hiccup",
        EscalationKind::RecoveryApprovalRequired => "repair",
        EscalationKind::CostConfirmation => "cost",
        EscalationKind::Stuck => "stuck",
    }
}
