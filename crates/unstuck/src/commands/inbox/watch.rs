//! Watches for new and resolved requests, one line each, for scripts and pipes.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::sanitize;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_store::{EscalationFilter, EscalationRow, EscalationStatusFilter};

use super::json::EscalationJson;
use super::text_list::headline;
use crate::command_context::CommandContext;
use crate::escalation_answers::{self, EscalationSelector};
use crate::output::{Output, YELLOW};
use crate::project_lookup::abbreviate_home;
use crate::redacted_stderr::RedactedStderr;
use crate::text_columns::truncate;
use crate::{async_runtime, clock};

/// Interval for polling the store.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Maximum width of a line.
const MAX_LINE: usize = 160;

/// A change in the inbox, as a JSON line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum InboxChange<'a> {
    Opened(Box<EscalationJson<'a>>),
    Closed(ClosedEscalation<'a>),
}

#[derive(Serialize)]
struct ClosedEscalation<'a> {
    id: &'a str,
    run: &'a str,
    /// The answer; none if the run continued without one.
    answer: Option<&'static str>,
    by: Option<String>,
    user: Option<String>,
    note: Option<String>,
    at: Timestamp,
}

/// Prints the pending escalations, then changes as they happen.
pub(super) fn run(json: bool, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let mut known = escalation_answers::open_escalations(&EscalationFilter::default(), session)?;
    print_changes(&[], &known, json, session, out)?;
    let mut in_trouble = false;
    loop {
        async_runtime::block_on(async {
            tokio::time::sleep(POLL_INTERVAL).await;
            Ok(())
        })?;
        match escalation_answers::open_escalations(&EscalationFilter::default(), session) {
            Ok(waiting) => {
                print_changes(&known, &waiting, json, session, out)?;
                known = waiting;
                in_trouble = false;
            }
            // A store that is busy now can be read later.
            Err(why) if !in_trouble => {
                writeln!(
                    RedactedStderr::auto(),
                    "{YELLOW}{why:#}{YELLOW:#}; retrying"
                )?;
                in_trouble = true;
            }
            Err(_) => {}
        }
    }
}

/// Prints new and resolved escalations.
fn print_changes(
    known: &[EscalationRow],
    waiting: &[EscalationRow],
    json: bool,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    for question in waiting.iter().rev().filter(|one| !is_among(known, one)) {
        if json {
            out.write_json_line(&InboxChange::Opened(Box::new(
                EscalationJson::from_escalation(question, session),
            )))?
        } else {
            writeln!(out, "{}", escalation_line(question))?
        }
    }
    let is_gone = |one: &&EscalationRow| {
        waiting
            .iter()
            .all(|other| other.request.id != one.request.id)
    };
    for question in known.iter().filter(is_gone) {
        print_closed(question, json, session, out)?;
    }
    out.flush()?;
    Ok(())
}

/// True if the list contains the same escalation unchanged.
fn is_among(known: &[EscalationRow], question: &EscalationRow) -> bool {
    known.iter().any(|one| one.request == question.request)
}

fn escalation_line(question: &EscalationRow) -> String {
    let asked = &question.request;
    let line = format!(
        "{}  opened   {}  {}  {}  {}",
        clock::format_time(question.at),
        asked.id,
        asked.escalation_kind.label(),
        sanitize(&abbreviate_home(&question.project)),
        headline(question)
    );
    truncate(&line, MAX_LINE)
}

fn print_closed(
    question: &EscalationRow,
    json: bool,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let filter = EscalationFilter {
        run: Some(question.run.clone()),
        prefix: Some(question.request.id.clone()),
        status: EscalationStatusFilter::Any,
        ..EscalationFilter::default()
    };
    let found = escalation_answers::open_escalations(&filter, session)?;
    let mut found = found
        .iter()
        .filter(|one| one.request.id == question.request.id);
    let answered = found.next().and_then(|one| one.closure.clone());
    let at = answered
        .as_ref()
        .map_or_else(|| clock::now().at, |one| one.at);
    let said = answered.and_then(|one| one.answer);
    if !json {
        let fate = resolution_text(&question.request.id, session);
        writeln!(out, "{}  closed   {fate}", clock::format_time(at))?;
        return Ok(());
    }
    let answer = said.as_ref().and_then(|said| said.answer());
    let by = said.as_ref().map(|said| said.by.clone());
    let note = said.as_ref().map(|said| said.note.clone());
    out.write_json_line(&InboxChange::Closed(ClosedEscalation {
        id: &question.request.id,
        run: question.run.as_str(),
        answer: answer.map(EscalationAnswer::name),
        by,
        user: said.and_then(|said| said.user),
        note: note.filter(|note| !note.is_empty()),
        at,
    }))
}

/// Describes who resolved an escalation, how and when.
pub(super) fn resolution_text(id: &str, session: &CommandContext<'_>) -> String {
    match escalation_answers::find_escalation(
        EscalationSelector::Id(id),
        EscalationAnswer::Resolve,
        session,
    ) {
        Ok(_) => format!("{id} is pending again"),
        Err(why) => why.to_string(),
    }
}
