//! One question whole: what was done, what failed, what was tried, what is proposed, what it costs, and what each answer does.

use std::io::Write;

use anyhow::Result;
use unstuck_core::Timestamp;
use unstuck_core::decision::{Amount, Changed, CostEstimate};
use unstuck_core::duration::Human;
use unstuck_core::guard::{show, show_command};
use unstuck_core::question::offered;
use unstuck_store::Question;

use super::list::USUAL;
use super::told::command;
use crate::clock::{self, ago};
use crate::columns::{broken, wrapped};
use crate::output::{BOLD, DIM, Output, YELLOW};
use crate::place::homely;
use crate::repair_words::{conditions, network_flag};
use crate::session::Session;

/// Where the texts begin, behind the names of the facts.
const INDENT: usize = 10;

/// Prints a question and the command lines that answer it.
pub(super) fn print(
    question: &Question,
    now: Timestamp,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    let columns = out.columns().unwrap_or(USUAL);
    writeln!(out, "{}\n", title(question, now))?;
    for line in facts(question, now, columns) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let id = &question.asked.id;
    for choice in offered(&question.asked) {
        let line = command(choice.answer, id, session);
        writeln!(out, "{BOLD}{line}{BOLD:#}")?;
        for line in wrapped(&show(&choice.does), columns.saturating_sub(2)) {
            writeln!(out, "  {line}")?;
        }
    }
    if question.asked.repair.is_some() {
        let command = question.asked.shown.command.as_deref().unwrap_or_default();
        let line = session.line(&format!("preview {id}{}", network_flag(command)));
        writeln!(out, "{BOLD}{line}{BOLD:#}")?;
        writeln!(
            out,
            "  shows what the command would change; nothing is answered"
        )?;
    }
    Ok(())
}

/// Which question it is.
pub(super) fn title(question: &Question, now: Timestamp) -> String {
    let asked = &question.asked;
    format!(
        "{BOLD}{}{BOLD:#} · {YELLOW}{}{YELLOW:#} · {} · {}",
        asked.id,
        asked.question.name(),
        ago(question.at, now),
        show(&homely(&question.project))
    )
}

/// All that is known about it, in lines of at most so many columns.
pub(super) fn facts(question: &Question, now: Timestamp, columns: usize) -> Vec<String> {
    let asked = &question.asked;
    let shown = &asked.shown;
    let mut facts = Facts::new(columns);
    facts.text("doing", &show(&shown.doing));
    if !shown.evidence.is_empty() {
        let seen = format!("{}: {}", asked.kind, show(shown.evidence.trim()));
        facts.text("failed", &seen);
    }
    facts.text("asked", &show(&asked.reason));
    for (at, tried) in shown.tried.iter().enumerate() {
        let name = if at == 0 { "tried" } else { "" };
        let why = match tried.why.is_empty() {
            true => String::new(),
            false => format!(": {}", show(&tried.why)),
        };
        facts.text(name, &format!("{}. {}{why}", at + 1, show(&tried.what)));
    }
    for (at, change) in shown.settings.iter().enumerate() {
        let value = |text: &Option<String>| text.as_deref().map_or("not set".to_owned(), show);
        facts.text(if at == 0 { "changed" } else { "" }, &show(&change.key));
        facts.exact("", &format!("- {}", value(&change.before)));
        facts.exact("", &format!("+ {}", value(&change.now)));
    }
    match &shown.command {
        Some(command) => facts.exact("proposed", &show_command(command)),
        None => facts.text("proposed", &proposal(question).unwrap_or_default()),
    }
    for (name, text) in shown.conditions.iter().flat_map(conditions) {
        facts.text(name, &text);
    }
    if let Some(cost) = &asked.cost {
        facts.text("costs", &show(&costs(cost)));
    }
    if let Some(reread) = shown.reread {
        facts.text("resuming", &reread.to_string());
    }
    if let Some(deadline) = shown.deadline {
        let left = Human(deadline.at.since(now));
        let at = clock::shown(deadline.at);
        let answer = deadline.answer;
        facts.text(
            "deadline",
            &format!("{answer} counts at {at} if nobody answers (in {left})"),
        );
    }
    facts.lines
}

/// What is proposed where it is no command.
fn proposal(question: &Question) -> Option<String> {
    let proposed = question.asked.proposed.as_ref()?;
    let models = proposed.changes.iter().filter_map(Changed::model);
    let models: Vec<_> = models
        .map(|(from, to)| format!("the model {to} in place of {from}"))
        .collect();
    // That a person is asked is no proposal to them.
    match models.is_empty() {
        true => Some(show(&proposed.strategy)).filter(|name| name != "ask_user"),
        false => Some(show(&models.join(", "))),
    }
}

fn costs(cost: &CostEstimate) -> String {
    match &cost.amount {
        Amount::Known(usd) => format!("about ${usd:.2} more: {}", cost.formula),
        Amount::Unknown { why } => format!("unknown: {why}"),
    }
}

/// Facts with their names in front.
struct Facts {
    lines: Vec<String>,
    room: usize,
}

impl Facts {
    fn new(columns: usize) -> Self {
        Self {
            lines: Vec::new(),
            room: columns.saturating_sub(INDENT),
        }
    }

    /// A text that may be broken at blanks; nothing where there is none.
    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.add(name, wrapped(text, self.room));
        }
    }

    /// A text of which every character counts.
    fn exact(&mut self, name: &str, text: &str) {
        self.add(name, broken(text, self.room));
    }

    fn add(&mut self, name: &str, lines: Vec<String>) {
        for (at, line) in lines.into_iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            self.lines
                .push(format!("{DIM}{name:<INDENT$}{DIM:#}{line}"));
        }
    }
}
