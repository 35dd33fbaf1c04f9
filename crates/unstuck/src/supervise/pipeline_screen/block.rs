//! The live block below the lines: who works, who waits, who is next, and what it has come to so far.

use unstuck_core::Timestamp;
use unstuck_core::duration::Human;
use unstuck_core::episode::{RunFold, SessionView, Status};
use unstuck_core::event::{Part, RoleStarted};
use unstuck_core::pipeline::Pipeline;

use super::story::{Story, name_of};
use crate::clock;
use crate::output::{DIM, GREEN, RED, Size, YELLOW};
use crate::show_text::cut;

/// How many rows are left to what stands above the block.
const ABOVE: usize = 3;
/// The widest that the first two columns become.
const WIDEST: usize = 24;

/// Who is shown on one line.
struct Row {
    style: anstyle::Style,
    symbol: char,
    name: String,
    agent: String,
    doing: String,
}

/// The block as lines of text, none wider and all together not higher than the terminal allows.
pub(super) fn lines(
    run: &RunFold,
    story: &Story,
    now: Timestamp,
    since: Timestamp,
    size: Size,
) -> Vec<String> {
    let Some(pipeline) = &run.pipeline else {
        return Vec::new();
    };
    let mut rows: Vec<_> = open(run, pipeline)
        .map(|(session, part)| at_work(session, name_of(part, pipeline), story, now))
        .collect();
    rows.extend(next(run, pipeline).map(|(role, after)| to_come(role, &after)));
    // The total, and the line that says how many are left out.
    let room = size.rows.saturating_sub(ABOVE + 1).max(1);
    let hidden = match rows.len() <= room {
        true => 0,
        false => rows.len() - (room - 1),
    };
    rows.truncate(rows.len() - hidden);
    let width = |text: fn(&Row) -> &String| {
        let widths = rows.iter().map(|row| text(row).chars().count());
        widths.max().unwrap_or(0).min(WIDEST)
    };
    let widths = (width(|row| &row.name), width(|row| &row.agent));
    let columns = size.columns.saturating_sub(1);
    let mut lines: Vec<_> = rows.iter().map(|row| row.line(widths, columns)).collect();
    if hidden > 0 {
        lines.push(format!(
            "{DIM}{}{DIM:#}",
            cut(&format!("… and {hidden} more"), columns)
        ));
    }
    let total = total(run, pipeline, now, since);
    lines.push(format!("{DIM}{}{DIM:#}", cut(&total, columns)));
    lines
}

impl Row {
    fn line(&self, (name, agent): (usize, usize), columns: usize) -> String {
        let mut text = format!("{:<name$}", cut(&self.name, name));
        if agent > 0 {
            text.push_str(&format!("  {:<agent$}", cut(&self.agent, agent)));
        }
        text.push_str(&format!("  {}", self.doing));
        let (style, symbol) = (self.style, self.symbol);
        let text = cut(text.trim_end(), columns.saturating_sub(2));
        format!("{style}{symbol}{style:#} {text}")
    }
}

/// The sessions of this iteration that are not at their end, with the parts that they play.
fn open<'a>(
    run: &'a RunFold,
    pipeline: &'a Pipeline,
) -> impl Iterator<Item = (&'a SessionView, &'a Part)> {
    let sessions = run
        .sessions
        .iter()
        .filter(|session| session.finished.is_none());
    let with_part = sessions.filter_map(|session| Some((session, session.part.as_ref()?)));
    with_part.filter(|(_, part)| part.iteration == pipeline.iteration())
}

/// The roles that have not begun and wait for nobody but those who are at work, each with whom it waits for.
fn next<'a>(
    run: &'a RunFold,
    pipeline: &'a Pipeline,
) -> impl Iterator<Item = (&'a RoleStarted, Vec<&'a str>)> {
    let working: Vec<&str> = open(run, pipeline).map(|(_, part)| &*part.role).collect();
    let left = pipeline.left();
    pipeline.plan().roles.iter().filter_map(move |role| {
        let id = role.id.as_str();
        let is_to_come = left.contains(&id) && !working.contains(&id);
        let stopped = pipeline.stopped().any(|(part, _)| part.role == id);
        if !is_to_come || stopped {
            return None;
        }
        let needs = role.needs.iter().map(String::as_str);
        let unmet: Vec<_> = needs.filter(|need| left.contains(need)).collect();
        let near = unmet.iter().all(|need| working.contains(need));
        near.then_some((role, unmet))
    })
}

fn at_work(session: &SessionView, name: String, story: &Story, now: Timestamp) -> Row {
    let (style, symbol) = match session.status {
        Status::Waiting => (YELLOW, '◌'),
        Status::AwaitingHuman => (RED, '?'),
        _ => (GREEN, '●'),
    };
    let mut doing = vec![match (session.status, session.until) {
        (Status::Waiting, Some(until)) => waiting(session, until, now),
        (Status::AwaitingHuman, _) => "needs a person".to_owned(),
        _ => running(session, story, now),
    }];
    if session.cost_usd > 0.0 {
        doing.push(format!("${:.2}", session.cost_usd));
    }
    Row {
        style,
        symbol,
        name,
        agent: agent(session),
        doing: doing.join(" · "),
    }
}

fn waiting(session: &SessionView, until: Timestamp, now: Timestamp) -> String {
    let (next, left) = (session.attempts + 1, Human(until.since(now)));
    let give_up = session.wait.give_up_at.map(clock::shown);
    let give_up = give_up.map(|at| format!(" · gives up at {at}"));
    format!("attempt {next} in {left}{}", give_up.unwrap_or_default())
}

fn running(session: &SessionView, story: &Story, now: Timestamp) -> String {
    match (session.attempts, story.trying(&session.id)) {
        (0, _) | (_, None) => "about to begin".to_owned(),
        (n, Some(trying)) => format!("attempt {n} · {}", Human(now.since(trying.since))),
    }
}

/// The agent and its model, as far as they are known.
fn agent(session: &SessionView) -> String {
    let known = session.agent.iter().chain(&session.model);
    known.map(String::as_str).collect::<Vec<_>>().join("/")
}

fn to_come(role: &RoleStarted, after: &[&str]) -> Row {
    Row {
        style: DIM,
        symbol: '○',
        name: role.id.clone(),
        agent: String::new(),
        doing: match after.is_empty() {
            true => "next".to_owned(),
            false => format!("after {}", after.join(", ")),
        },
    }
}

fn total(run: &RunFold, pipeline: &Pipeline, now: Timestamp, since: Timestamp) -> String {
    let (done, all) = (pipeline.completed().len(), pipeline.plan().roles.len());
    let mut facts = vec![format!("{done}/{all} roles done")];
    if pipeline.plan().looping.is_some() {
        let (iteration, most) = (pipeline.iteration(), pipeline.most_iterations());
        facts.push(format!("iteration {iteration} of {most}"));
    }
    facts.push(Human(now.since(since)).to_string());
    if run.view.cost_usd > 0.0 {
        facts.push(format!("${:.2}", run.view.cost_usd));
    }
    let waits = |(session, _): &(&SessionView, &Part)| session.status == Status::Waiting;
    if let Some((session, _)) = open(run, pipeline).find(waits) {
        facts.push(format!("now: unstuck retry {}", session.id.as_str()));
        facts.push("Ctrl-C stops".to_owned());
    }
    facts.join(" · ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anstream::adapter::strip_str;
    use unstuck_core::event::{Outcome, WaitingUntil};

    use super::super::story::tests::{Told, role};
    use super::*;

    fn shown(told: &Told, columns: usize, rows: usize) -> Vec<String> {
        let (now, since) = (told.now, told.run.view.started);
        let size = Size { columns, rows };
        let lines = lines(&told.run, &told.story, now, since, size);
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
    fn who_works_and_who_is_next_is_shown_with_the_total() {
        let mut told = shop(None);
        assert_eq!(
            shown(&told, 80, 24),
            ["○ architect  next", "0/4 roles done · 0 s"]
        );
        let (session, part) = told.start("architect", 1);
        told.now = told.now.after(Duration::from_secs(62));
        assert_eq!(
            shown(&told, 80, 24),
            [
                "● architect    claude/opus  attempt 1 · 1 min 2 s",
                "○ implementer               after architect",
                "0/4 roles done · 1 min 2 s",
            ]
        );
        told.finish(&session, &part, Outcome::Succeeded);
        let (first, _) = told.start("implementer", 1);
        told.start("implementer", 2);
        told.happen(WaitingUntil {
            session: Some(first),
            until: told.now.after(Duration::from_secs(12)),
            reason: "r".into(),
            stated: false,
            give_up_at: None,
            wait_for: Default::default(),
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
        let retry = " · Ctrl-C stops";
        assert!(
            lines[3].starts_with("1/4 roles done · 1 min 2 s · now: unstuck retry "),
            "{lines:?}"
        );
        assert!(lines[3].ends_with(retry), "{lines:?}");
    }

    #[test]
    fn a_loop_shows_its_iteration() {
        let told = shop(Some(10));
        assert_eq!(
            shown(&told, 80, 24)[1],
            "0/4 roles done · iteration 1 of 10 · 0 s"
        );
    }

    #[test]
    fn it_is_never_larger_than_the_terminal() {
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
