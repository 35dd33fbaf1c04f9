//! Live block below the lines: active, waiting and next roles, and the totals.

use std::collections::BTreeMap;

use unstuck_core::Timestamp;
use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{RecordedRoleSettings, RoleInstance, SessionId};
use unstuck_core::pipeline::PipelineState;
use unstuck_core::views::{RunProjection, RunStatus, SessionSummary};
use unstuck_run::runner::SessionWait;

use super::super::wait_lines;
use super::event_lines::{PipelineEventLines, part_label};
use crate::clock;
use crate::output::{DIM, GREEN, RED, TerminalSize, YELLOW};
use crate::sanitized_text::truncate;

/// Rows reserved for the lines above the block.
const ROWS_ABOVE: usize = 3;
/// Maximum width of the first two columns.
const MAX_COLUMN: usize = 24;

/// One line of the block.
struct BlockRow {
    style: anstyle::Style,
    symbol: char,
    name: String,
    agent: String,
    activity: String,
}

/// Renders the block, fitted to the size of the terminal.
pub(super) fn block_lines(
    run: &RunProjection,
    story: &PipelineEventLines,
    held_calls: &BTreeMap<SessionId, SessionWait>,
    now: Timestamp,
    since: Timestamp,
    size: TerminalSize,
) -> Vec<String> {
    let Some(pipeline) = &run.pipeline else {
        return Vec::new();
    };
    let mut rows: Vec<_> = open_sessions(run, pipeline)
        .map(|(session, part)| {
            let held = held_calls.get(&session.id);
            session_row(session, part_label(part, pipeline), story, held, now)
        })
        .collect();
    rows.extend(next_roles(run, pipeline).map(|(role, after)| pending_row(role, &after)));
    // Reserved for the totals and the number of omitted lines.
    let room = size.rows.saturating_sub(ROWS_ABOVE + 1).max(1);
    let hidden = if rows.len() <= room {
        0
    } else {
        rows.len() - (room - 1)
    };
    rows.truncate(rows.len() - hidden);
    let width = |text: fn(&BlockRow) -> &String| {
        let widths = rows.iter().map(|row| text(row).chars().count());
        widths.max().unwrap_or(0).min(MAX_COLUMN)
    };
    let widths = (width(|row| &row.name), width(|row| &row.agent));
    let columns = size.columns.saturating_sub(1);
    let mut lines: Vec<_> = rows.iter().map(|row| row.line(widths, columns)).collect();
    if hidden > 0 {
        lines.push(format!(
            "{DIM}{}{DIM:#}",
            truncate(&format!("… and {hidden} more"), columns)
        ));
    }
    let total = totals_line(run, pipeline, held_calls, now, since);
    lines.push(format!("{DIM}{}{DIM:#}", truncate(&total, columns)));
    lines
}

impl BlockRow {
    fn line(&self, (name, agent): (usize, usize), columns: usize) -> String {
        let mut text = format!("{:<name$}", truncate(&self.name, name));
        if agent > 0 {
            text.push_str(&format!("  {:<agent$}", truncate(&self.agent, agent)));
        }
        text.push_str(&format!("  {}", self.activity));
        let (style, symbol) = (self.style, self.symbol);
        let text = truncate(text.trim_end(), columns.saturating_sub(2));
        format!("{style}{symbol}{style:#} {text}")
    }
}

/// Returns the unfinished sessions of this iteration with their role instances.
fn open_sessions<'a>(
    run: &'a RunProjection,
    pipeline: &'a PipelineState,
) -> impl Iterator<Item = (&'a SessionSummary, &'a RoleInstance)> {
    let sessions = run
        .sessions
        .iter()
        .filter(|session| session.finished.is_none());
    let with_part = sessions.filter_map(|session| Some((session, session.part.as_ref()?)));
    with_part.filter(|(_, part)| part.iteration == pipeline.iteration())
}

/// Returns the pending roles whose dependencies are all done or active, each with the active ones.
fn next_roles<'a>(
    run: &'a RunProjection,
    pipeline: &'a PipelineState,
) -> impl Iterator<Item = (&'a RecordedRoleSettings, Vec<&'a str>)> {
    let working: Vec<&str> = open_sessions(run, pipeline)
        .map(|(_, part)| &*part.role)
        .collect();
    let left = pipeline.remaining_roles();
    pipeline.plan().roles.iter().filter_map(move |role| {
        let id = role.id.as_str();
        let is_to_come = left.contains(&id) && !working.contains(&id);
        let stopped = pipeline
            .stopped_instances()
            .any(|(part, _)| part.role == id);
        if !is_to_come || stopped {
            return None;
        }
        let needs = role.needs.iter().map(String::as_str);
        let unmet: Vec<_> = needs.filter(|need| left.contains(need)).collect();
        let near = unmet.iter().all(|need| working.contains(need));
        near.then_some((role, unmet))
    })
}

fn session_row(
    session: &SessionSummary,
    name: String,
    story: &PipelineEventLines,
    held: Option<&SessionWait>,
    now: Timestamp,
) -> BlockRow {
    let (style, symbol) = match (session.status, held) {
        (RunStatus::Waiting, _) | (RunStatus::Running, Some(_)) => (YELLOW, '◌'),
        (RunStatus::AwaitingHuman, _) => (RED, '?'),
        _ => (GREEN, '●'),
    };
    let mut doing = vec![match (session.status, session.until, held) {
        (RunStatus::Waiting, Some(until), _) => waiting_text(session, until, now),
        (RunStatus::AwaitingHuman, ..) => "needs your input".to_owned(),
        (RunStatus::Running, _, Some(held)) => wait_lines::countdown_line(held, session.attempts),
        _ => running_text(session, story, now),
    }];
    if session.cost_usd > 0.0 {
        doing.push(format!("${:.2}", session.cost_usd));
    }
    BlockRow {
        style,
        symbol,
        name,
        agent: agent_and_model(session),
        activity: doing.join(" · "),
    }
}

fn waiting_text(session: &SessionSummary, until: Timestamp, now: Timestamp) -> String {
    let (next, left) = (session.attempts + 1, HumanDuration(until.since(now)));
    if session.wait.is_for_conversation {
        return format!("conversation in use elsewhere (waiting up to {left})");
    }
    let give_up = session.wait.give_up_at.map(clock::format_deadline);
    let give_up = give_up.map(|at| format!(" · gives up at {at}"));
    format!("attempt {next} in {left}{}", give_up.unwrap_or_default())
}

fn running_text(session: &SessionSummary, story: &PipelineEventLines, now: Timestamp) -> String {
    match (session.attempts, story.attempt_of(&session.id)) {
        (0, _) | (_, None) => "starting".to_owned(),
        (n, Some(trying)) => format!("attempt {n} · {}", HumanDuration(now.since(trying.since))),
    }
}

/// Returns the agent and its model, as far as known.
fn agent_and_model(session: &SessionSummary) -> String {
    let known = session.agent.iter().chain(&session.model);
    known.map(String::as_str).collect::<Vec<_>>().join("/")
}

fn pending_row(role: &RecordedRoleSettings, after: &[&str]) -> BlockRow {
    BlockRow {
        style: DIM,
        symbol: '○',
        name: role.id.clone(),
        agent: String::new(),
        activity: if after.is_empty() {
            "next".to_owned()
        } else {
            format!("after {}", after.join(", "))
        },
    }
}

fn totals_line(
    run: &RunProjection,
    pipeline: &PipelineState,
    held_calls: &BTreeMap<SessionId, SessionWait>,
    now: Timestamp,
    since: Timestamp,
) -> String {
    let (done, all) = (
        pipeline.completed_roles().len(),
        pipeline.plan().roles.len(),
    );
    let mut facts = vec![format!("{done}/{all} done")];
    if pipeline.plan().loop_settings.is_some() {
        let (iteration, most) = (pipeline.iteration(), pipeline.max_iterations());
        facts.push(format!("iteration {iteration} of {most}"));
    }
    facts.push(HumanDuration(now.since(since)).to_string());
    if run.summary.cost_usd > 0.0 {
        facts.push(format!("${:.2}", run.summary.cost_usd));
    }
    let waits = |(session, _): &(&SessionSummary, &RoleInstance)| {
        session.status == RunStatus::Waiting || held_calls.contains_key(&session.id)
    };
    if let Some((session, _)) = open_sessions(run, pipeline).find(waits) {
        facts.push(format!("retry now: unstuck retry {}", session.id.as_str()));
        facts.push("Ctrl-C to stop".to_owned());
    }
    facts.join(" · ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anstream::adapter::strip_str;
    use unstuck_core::event::{RunOutcome, WaitStarted};

    use super::super::event_lines::tests::{Told, role};
    use super::*;

    fn shown(told: &Told, columns: usize, rows: usize) -> Vec<String> {
        shown_with(told, &BTreeMap::new(), columns, rows)
    }

    fn shown_with(
        told: &Told,
        held_calls: &BTreeMap<SessionId, SessionWait>,
        columns: usize,
        rows: usize,
    ) -> Vec<String> {
        let (now, since) = (told.now, told.run.summary.started);
        let size = TerminalSize { columns, rows };
        let lines = block_lines(&told.run, &told.story, held_calls, now, since, size);
        lines
            .iter()
            .map(|line| strip_str(line).to_string())
            .collect()
    }

    fn shop(iterations: Option<u32>) -> Told {
        let roles = vec![
            role("architect", &[], 1),
            role("implementer", &["architect"], 2),
            role("tester", &["implementer"], 1),
            role("reviewer", &["tester"], 1),
        ];
        let mut told = Told::new(roles, iterations);
        told.iterate(1, "");
        told
    }

    #[test]
    fn active_and_next_roles_are_shown_with_totals() {
        let mut told = shop(None);
        assert_eq!(
            shown(&told, 80, 24),
            ["○ architect  next", "0/4 done · 0 s"]
        );
        let (session, part) = told.start("architect", 1);
        told.now = told.now.after(Duration::from_secs(62));
        assert_eq!(
            shown(&told, 80, 24),
            [
                "● architect    claude/opus  attempt 1 · 1 min 2 s",
                "○ implementer               after architect",
                "0/4 done · 1 min 2 s",
            ]
        );
        told.finish(&session, &part, RunOutcome::Succeeded);
        let (first, _) = told.start("implementer", 1);
        told.start("implementer", 2);
        told.happen(WaitStarted {
            session: Some(first),
            until: told.now.after(Duration::from_secs(12)),
            reason: "r".into(),
            is_stated: false,
            give_up_at: None,
            wait_purpose: Default::default(),
            source: None,
            reread: None,
        });
        let lines = shown(&told, 80, 24);
        assert!(
            lines[0].starts_with("◌ implementer#1  claude/opus  attempt 2 in 12 s"),
            "{lines:?}"
        );
        assert_eq!(lines[1], "● implementer#2  claude/opus  attempt 1 · 0 s");
        assert_eq!(lines[2], "○ tester                      after implementer");
        let retry = " · Ctrl-C to stop";
        assert!(
            lines[3].starts_with("1/4 done · 1 min 2 s · retry now: unstuck retry "),
            "{lines:?}"
        );
        assert!(lines[3].ends_with(retry), "{lines:?}");
    }

    #[test]
    fn held_api_call_is_shown_as_a_wait() {
        let mut told = shop(None);
        let (session, _) = told.start("architect", 1);
        let wait = SessionWait {
            left: Duration::from_secs(42),
            until: told.now.after(Duration::from_secs(42)),
            kind: None,
            wait_purpose: Default::default(),
            give_up_at: Some(told.now.after(Duration::from_secs(1800))),
            is_held_call: true,
        };
        let lines = shown_with(&told, &[(session, wait)].into(), 80, 24);
        let start = "◌ architect    claude/opus  API retry in 42 s · gives up at ";
        assert!(lines[0].starts_with(start), "{lines:?}");
        let last = lines.last().unwrap();
        assert!(last.contains("retry now: unstuck retry "), "{lines:?}");
    }

    #[test]
    fn loop_shows_its_iteration() {
        let told = shop(Some(10));
        assert_eq!(
            shown(&told, 80, 24)[1],
            "0/4 done · iteration 1 of 10 · 0 s"
        );
    }

    #[test]
    fn block_never_exceeds_the_terminal() {
        let roles = (1..=15).map(|n| role(&format!("röle-with-a-long-näme-{n:02}"), &[], 1));
        let mut told = Told::new(roles.collect(), None);
        told.iterate(1, "");
        told.start("röle-with-a-long-näme-01", 1);
        for (columns, rows) in [(80, 24), (80, 8), (30, 8), (10, 4), (1, 1)] {
            let lines = shown(&told, columns, rows);
            assert!(
                lines.len() <= rows.saturating_sub(3).max(2),
                "{rows} rows: {lines:?}"
            );
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(
                widest <= Some(columns.max(2)),
                "{columns} columns: {lines:?}"
            );
        }
        assert_eq!(shown(&told, 80, 8)[3], "… and 12 more");
    }
}
