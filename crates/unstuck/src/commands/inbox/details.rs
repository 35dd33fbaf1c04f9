//! Details of one escalation: history, failure, proposal, cost, and the effect of each answer.

use std::io::Write;

use anyhow::Result;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::{sanitize, sanitize_command};
use unstuck_core::decision::{ConcreteAttemptChange, CostEstimate, PossiblyUnknownAmount};
use unstuck_core::duration::HumanDuration;
use unstuck_core::escalation::offered_options;
use unstuck_store::EscalationRow;

use super::json::answer_command;
use super::text_list::DEFAULT_WIDTH;
use crate::clock::{self, format_age};
use crate::command_context::CommandContext;
use crate::output::{BOLD, DIM, Output, YELLOW};
use crate::project_lookup::abbreviate_home;
use crate::repair_rendering::{condition_lines, network_flag};
use crate::text_columns::{wrap_anywhere, wrap_words};

/// Column where the values begin, after the labels.
const INDENT: usize = 10;

/// Prints an escalation and the command lines that answer it.
pub(super) fn print(
    question: &EscalationRow,
    now: Timestamp,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let columns = out.columns().unwrap_or(DEFAULT_WIDTH);
    writeln!(out, "{}\n", title(question, now))?;
    for line in facts(question, now, columns) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let id = &question.request.id;
    for choice in offered_options(&question.request) {
        let line = answer_command(choice.answer, id, session);
        writeln!(out, "{BOLD}{line}{BOLD:#}")?;
        for line in wrap_words(&sanitize(&choice.effect), columns.saturating_sub(2)) {
            writeln!(out, "  {line}")?;
        }
    }
    if question.request.repair.is_some() {
        let command = question
            .request
            .details
            .command
            .as_deref()
            .unwrap_or_default();
        let line = session.unstuck_command(&format!("preview {id}{}", network_flag(command)));
        writeln!(out, "{BOLD}{line}{BOLD:#}")?;
        writeln!(
            out,
            "  show what the command would change, without answering"
        )?;
    }
    Ok(())
}

/// Returns the title line of the escalation.
pub(super) fn title(question: &EscalationRow, now: Timestamp) -> String {
    let asked = &question.request;
    format!(
        "{BOLD}{}{BOLD:#} · {YELLOW}{}{YELLOW:#} · {} · {}",
        asked.id,
        asked.escalation_kind.label(),
        format_age(question.at, now),
        sanitize(&abbreviate_home(&question.project))
    )
}

/// Renders all facts about the escalation in lines of at most `columns`.
pub(super) fn facts(question: &EscalationRow, now: Timestamp, columns: usize) -> Vec<String> {
    let asked = &question.request;
    let shown = &asked.details;
    let mut facts = FactLines::new(columns);
    facts.text("activity", &sanitize(&shown.activity));
    if !shown.evidence.is_empty() {
        let seen = format!("{}: {}", asked.kind, sanitize(shown.evidence.trim()));
        facts.text("failure", &seen);
    }
    facts.text("reason", &sanitize(&asked.reason));
    for (at, tried) in shown.prior_attempts.iter().enumerate() {
        let name = if at == 0 { "attempts" } else { "" };
        let why = if tried.failure_reason.is_empty() {
            String::new()
        } else {
            format!(": {}", sanitize(&tried.failure_reason))
        };
        facts.text(name, &format!("{}. {}{why}", at + 1, sanitize(&tried.what)));
    }
    for (at, change) in shown.settings.iter().enumerate() {
        let value = |text: &Option<String>| text.as_deref().map_or("not set".to_owned(), sanitize);
        facts.text(if at == 0 { "changed" } else { "" }, &sanitize(&change.key));
        facts.verbatim("", &format!("- {}", value(&change.before)));
        facts.verbatim("", &format!("+ {}", value(&change.after)));
    }
    match &shown.command {
        Some(command) => facts.verbatim("proposed", &sanitize_command(command)),
        None => facts.text("proposed", &proposal(question).unwrap_or_default()),
    }
    for (name, text) in shown.conditions.iter().flat_map(condition_lines) {
        facts.text(name, &text);
    }
    if let Some(cost) = &asked.cost {
        facts.text("cost", &sanitize(&cost_text(cost)));
    }
    if let Some(reread) = shown.reread {
        facts.text("resuming", &reread.to_string());
    }
    if let Some(deadline) = shown.deadline {
        let left = HumanDuration(deadline.at.since(now));
        let at = clock::format_time(deadline.at);
        let answer = deadline.answer;
        facts.text(
            "deadline",
            &format!("{answer} applies at {at} (in {left}) unless answered"),
        );
    }
    facts.lines
}

/// Describes a proposal that is not a command.
fn proposal(question: &EscalationRow) -> Option<String> {
    let proposed = question.request.proposed.as_ref()?;
    let models = proposed
        .changes
        .iter()
        .filter_map(ConcreteAttemptChange::model_switch);
    let models: Vec<_> = models
        .map(|(from, to)| format!("model {to} instead of {from}"))
        .collect();
    // Asking a human is not a proposal.
    if models.is_empty() {
        Some(sanitize(&proposed.strategy)).filter(|name| name != "ask_user")
    } else {
        Some(sanitize(&models.join(", ")))
    }
}

fn cost_text(cost: &CostEstimate) -> String {
    match &cost.amount {
        PossiblyUnknownAmount::Known(usd) => format!("about ${usd:.2} more: {}", cost.formula),
        PossiblyUnknownAmount::Unknown { why } => format!("unknown: {why}"),
    }
}

/// Labeled lines of facts.
struct FactLines {
    lines: Vec<String>,
    room: usize,
}

impl FactLines {
    fn new(columns: usize) -> Self {
        Self {
            lines: Vec::new(),
            room: columns.saturating_sub(INDENT),
        }
    }

    /// Adds a wrapped text; nothing if it is empty.
    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.add(name, wrap_words(text, self.room));
        }
    }

    /// Adds a text without reflowing it.
    fn verbatim(&mut self, name: &str, text: &str) {
        self.add(name, wrap_anywhere(text, self.room));
    }

    fn add(&mut self, name: &str, lines: Vec<String>) {
        for (at, line) in lines.into_iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            self.lines
                .push(format!("{DIM}{name:<INDENT$}{DIM:#}{line}"));
        }
    }
}
