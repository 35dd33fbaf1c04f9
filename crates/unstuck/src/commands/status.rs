//! `unstuck status`: active, waiting and blocked runs on one screen.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anstyle::Style;
use anyhow::Result;
use clap::Args;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::{sanitize, sanitize_command};
use unstuck_core::duration::HumanDuration;
use unstuck_core::views::RunStatus;
use unstuck_store::{EscalationFilter, EscalationRow, RunFilter};

use crate::command_context::CommandContext;
use crate::output::{self, BOLD, DIM, GREEN, Output, RED, TerminalSize, YELLOW};
use crate::project_lookup::{abbreviate_home, current_project, project_at};
use crate::run_history::{RunEntry, RunHistory};
use crate::run_title::run_title;
use crate::text_columns::{fit_with_facts, truncate, width};
use crate::{async_runtime, clock, escalation_answers, wait_state_text};

/// Exit code if human input is needed, as in `unstuck exec`.
const EXIT_NEEDS_INPUT: u8 = 3;
/// Maximum number of runs in each section.
const MAX_RUNS: usize = 10;
/// Width used if the terminal width is unknown.
const DEFAULT_WIDTH: usize = 100;
/// Minimum width of the command column before other columns are dropped.
const MIN_COMMAND_WIDTH: usize = 16;
/// Indentation of the lines below a command.
const INDENT: usize = 10;
/// Runs that the user stopped longer ago are hidden.
const RECENTLY_STOPPED: Duration = Duration::from_secs(24 * 3600);

/// Show active, waiting and blocked runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck status
  unstuck status --project .
  unstuck status --short          (one line for shell prompts and status bars)
  unstuck status --json | jq -r '.[] | .id + \" \" + .state.state'

Exit codes:
  0    nothing needs your input
  3    needs your input: an open request, or a run that crashed
  2    unstuck error (usage, configuration, database)")]
pub(crate) struct StatusArgs {
    /// Only the project that this directory belongs to
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Print one line, or nothing if there is nothing to report
    #[arg(long, conflicts_with = "json")]
    short: bool,

    /// Print the runs as a JSON array, each with its `state`
    #[arg(long)]
    json: bool,
}

/// The sections of the screen, each newest first.
struct StatusOverview {
    running: Vec<RunEntry>,
    waiting: Vec<RunEntry>,
    /// Requests, and blocked runs without one.
    needs_input: Vec<StatusEntry>,
    crashed: Vec<RunEntry>,
    stopped: Vec<RunEntry>,
}

pub(crate) fn run(
    args: &StatusArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let now = clock::now().at;
    let project = args.project.as_deref().map(project_at).transpose()?;
    // This applies the default answer to expired requests.
    let questions = escalation_answers::open_escalations(
        &EscalationFilter {
            project: project.clone(),
            ..EscalationFilter::default()
        },
        session,
    )?;
    let listed = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let filter = RunFilter {
            project,
            status: vec![
                RunStatus::Running,
                RunStatus::Waiting,
                RunStatus::AwaitingHuman,
                RunStatus::Crashed,
                RunStatus::Interrupted,
            ],
            ..RunFilter::default()
        };
        history.run_entries(&filter, now).await
    })?;
    let lately = now.before(RECENTLY_STOPPED);
    let is_shown = |one: &RunEntry| {
        one.run.status != RunStatus::Interrupted || one.run.finished.is_some_and(|at| at >= lately)
    };
    let listed: Vec<_> = listed.into_iter().filter(is_shown).collect();
    let needs = |one: &RunEntry| {
        matches!(
            one.run.status,
            RunStatus::AwaitingHuman | RunStatus::Crashed
        )
    };
    let code = if listed.iter().any(needs) || !questions.is_empty() {
        ExitCode::from(EXIT_NEEDS_INPUT)
    } else {
        ExitCode::SUCCESS
    };
    if args.json {
        out.write_json(&listed)?;
        return Ok(code);
    }
    let shown = StatusOverview::from_runs(listed, &questions, now);
    if args.short {
        print_short(&shown, now, out)?;
    } else {
        for line in screen(&shown, output::terminal_size(io::stdout()), now, session) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(code)
}

impl StatusOverview {
    fn from_runs(listed: Vec<RunEntry>, questions: &[EscalationRow], now: Timestamp) -> Self {
        let mut asked: HashMap<_, usize> = HashMap::new();
        for question in questions {
            *asked.entry(&question.run).or_default() += 1;
        }
        let requests = questions.iter().map(|question| {
            let is_only = asked.get(&question.run) == Some(&1);
            StatusEntry::of_request(question, is_only, now)
        });
        let mut shown = Self {
            running: Vec::new(),
            waiting: Vec::new(),
            needs_input: requests.collect(),
            crashed: Vec::new(),
            stopped: Vec::new(),
        };
        for one in listed {
            let part = match one.run.status {
                RunStatus::Running => &mut shown.running,
                RunStatus::Waiting => &mut shown.waiting,
                RunStatus::Crashed => &mut shown.crashed,
                RunStatus::Interrupted => &mut shown.stopped,
                RunStatus::AwaitingHuman => {
                    if !asked.contains_key(&one.run.id) {
                        let reason = one.run.reason.clone().unwrap_or_default();
                        shown
                            .needs_input
                            .push(StatusEntry::of_run(&one).with_detail(reason));
                    }
                    continue;
                }
                RunStatus::Succeeded | RunStatus::Recovered | RunStatus::Failed => continue,
            };
            part.push(one);
        }
        shown
    }
}

/// Prints one line for a shell prompt or status bar.
fn print_short(shown: &StatusOverview, now: Timestamp, out: &mut Output) -> Result<()> {
    let count = |count: usize, word: &str| match count {
        0 => None,
        n => Some(format!("{n} {word}")),
    };
    let until = shown.waiting.iter().filter_map(|one| one.state.until).min();
    let until = until.filter(|until| *until > now);
    let until = until.map_or_else(String::new, |until| {
        format!(" until {}", clock::format_time(until))
    });
    let need = match shown.needs_input.len() {
        1 => "needs your input",
        _ => "need your input",
    };
    let parts = [
        count(shown.needs_input.len(), need),
        count(shown.crashed.len(), "crashed"),
        count(shown.running.len(), "running"),
        count(shown.waiting.len(), "waiting").map(|text| text + &until),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        writeln!(out, "{}", parts.join(", "))?;
    }
    Ok(())
}

/// A run or a request on the screen.
#[derive(Debug, Clone, Default)]
struct StatusEntry {
    id: String,
    command: String,
    project: String,
    /// Elapsed time, shown after the command.
    time: String,
    /// Reason and end of the wait, on its own line.
    detail: String,
}

impl StatusEntry {
    fn of_run(listed: &RunEntry) -> Self {
        Self {
            id: listed.run.id.short().to_owned(),
            command: run_title(&listed.run),
            project: listed.run.project.clone(),
            ..Self::default()
        }
    }

    fn of_request(question: &EscalationRow, is_only: bool, now: Timestamp) -> Self {
        let (asked, shown) = (&question.request, &question.request.details);
        let why = match (&shown.command, shown.evidence.trim()) {
            (Some(command), _) => format!("approve? {}", sanitize_command(command)),
            (None, "") => sanitize(&asked.reason),
            (None, evidence) => format!("{}: {}", asked.kind, sanitize(evidence)),
        };
        let expires = shown.deadline.filter(|deadline| deadline.at > now);
        let expires = expires.map(|deadline| {
            let left = HumanDuration(deadline.at.since(now));
            format!("{} in {left}; ", deadline.answer)
        });
        Self {
            id: if is_only {
                question.run.short().to_owned()
            } else {
                asked.id.clone()
            },
            command: match shown.activity.trim() {
                "" => sanitize(&asked.reason),
                doing => sanitize(doing),
            },
            project: question.project.clone(),
            time: clock::format_age(question.at, now),
            detail: expires.unwrap_or_default() + &why,
        }
    }

    fn with_time(mut self, time: String) -> Self {
        self.time = time;
        self
    }

    fn with_detail(mut self, below: String) -> Self {
        self.detail = below;
        self
    }

    /// Number of lines it occupies.
    fn height(&self) -> usize {
        1 + usize::from(!self.detail.is_empty())
    }

    fn lines(&self, columns: usize) -> impl Iterator<Item = String> {
        let room = columns.saturating_sub(width(&self.id) + 4);
        let folder = self.project.rsplit('/').next().unwrap_or_default();
        let project = if columns < DEFAULT_WIDTH {
            folder.to_owned()
        } else {
            abbreviate_home(&self.project)
        };
        let facts = [&self.time, &project].map(|fact| match fact.as_str() {
            "" => String::new(),
            fact => format!("  {}", sanitize(fact)),
        });
        let (command, facts) = fit_with_facts(&self.command, &facts, MIN_COMMAND_WIDTH, Some(room));
        let first = format!(
            "  {BOLD}{}{BOLD:#}  {command}{DIM}{facts}{DIM:#}",
            truncate(&self.id, columns.saturating_sub(2))
        );
        let below = (!self.detail.is_empty()).then(|| {
            let indent = INDENT.min(columns / 4);
            let below = truncate(&self.detail, columns.saturating_sub(indent));
            format!("{:indent$}{DIM}{below}{DIM:#}", "")
        });
        [first].into_iter().chain(below)
    }
}

/// The runs of one state.
struct StatusSection {
    title: &'static str,
    style: Style,
    entries: Vec<StatusEntry>,
}

fn sections(shown: &StatusOverview, now: Timestamp) -> [StatusSection; 5] {
    let part = |title, style, entries| StatusSection {
        title,
        style,
        entries,
    };
    let of = |runs: &[RunEntry], entry: &dyn Fn(StatusEntry, &RunEntry) -> StatusEntry| {
        let runs = runs.iter().map(|one| entry(StatusEntry::of_run(one), one));
        runs.collect::<Vec<_>>()
    };
    let crashed = of(&shown.crashed, &|entry, one| {
        let wait = wait_state_text::wait_text(&one.state, now);
        let below = wait.map_or_else(String::new, |wait| format!("was waiting {wait}"));
        let began = format!("started {}", clock::format_age(one.run.started, now));
        entry.with_time(began).with_detail(below)
    });
    let waiting = of(&shown.waiting, &|entry, one| {
        entry.with_detail(wait_state_text::wait_text(&one.state, now).unwrap_or_default())
    });
    let running = of(&shown.running, &|entry, one| {
        entry.with_time(format!("for {}", HumanDuration(now.since(one.run.started))))
    });
    let stopped = of(&shown.stopped, &|entry, one| {
        let at = one.run.finished.unwrap_or(one.run.started);
        entry.with_time(clock::format_age(at, now))
    });
    [
        part("needs your input", RED, shown.needs_input.clone()),
        part("crashed", RED, crashed),
        part("waiting", YELLOW, waiting),
        part("running", GREEN, running),
        part("stopped", YELLOW, stopped),
    ]
}

/// Renders the overview, limited to the terminal height.
fn screen(
    shown: &StatusOverview,
    size: Option<TerminalSize>,
    now: Timestamp,
    session: &CommandContext<'_>,
) -> Vec<String> {
    let columns = size.map_or(DEFAULT_WIDTH, |size| size.columns);
    let parts: Vec<_> = sections(shown, now).into();
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|part| !part.entries.is_empty())
        .collect();
    let mut lines = Vec::new();
    if parts.iter().all(|part| part.title == "stopped") {
        let idle = "No active runs, and nothing needs your input.";
        lines.push(truncate(idle, columns));
    }
    let next = [
        (!shown.needs_input.is_empty())
            .then(|| format!("answer: {}", session.unstuck_command("inbox"))),
        (!shown.crashed.is_empty()).then(|| {
            let here = current_project();
            let is_elsewhere = shown.crashed.iter().any(|one| one.run.project != here);
            let everywhere = if is_elsewhere { " --everywhere" } else { "" };
            let resume = format!("resume --all{everywhere}");
            format!("resume: {}", session.unstuck_command(&resume))
        }),
    ];
    let next: Vec<_> = next.into_iter().flatten().collect();
    let footer = match next.len() {
        0 => 0,
        count => 1 + count,
    };
    // The last line of a terminal is left for the shell prompt.
    let room = size.map(|size| size.rows.saturating_sub(lines.len() + footer + 1));
    let counts = entries_per_section(&parts, room);
    for (part, count) in parts.iter().zip(counts) {
        let (style, title, all) = (part.style, part.title, part.entries.len());
        let cut_short = match all > count {
            true if count == 0 => String::new(),
            true => format!(", newest {count}:"),
            false => String::new(),
        };
        lines.push(format!(
            "{style}{title}{style:#} ({all}){DIM}{cut_short}{DIM:#}"
        ));
        for entry in part.entries.iter().take(count) {
            lines.extend(entry.lines(columns));
        }
    }
    if !next.is_empty() {
        lines.push(String::new());
        lines.extend(next.iter().map(|line| format!("{DIM}{line}{DIM:#}")));
    }
    lines
}

/// Number of entries of each section that fit into `room` lines: one of each first, then more in turn.
fn entries_per_section(parts: &[StatusSection], room: Option<usize>) -> Vec<usize> {
    let mut left = room.map_or(usize::MAX, |room| room.saturating_sub(parts.len()));
    let mut counts = vec![0; parts.len()];
    let mut is_full = false;
    while !is_full {
        is_full = true;
        for (part, count) in parts.iter().zip(&mut counts) {
            let entry = part.entries.get(*count).filter(|_| *count < MAX_RUNS);
            let Some(height) = entry
                .map(StatusEntry::height)
                .filter(|height| *height <= left)
            else {
                continue;
            };
            left -= height;
            *count += 1;
            is_full = false;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn entry(number: usize) -> StatusEntry {
        StatusEntry {
            id: format!("k3v9{number:02}"),
            command: "claude -p 'fix the failing tests of the parser' 日本語".into(),
            project: "/home/me/work/a-project-with-a-long-name".into(),
            time: "3 min ago".into(),
            detail: "abort in 23 h; auth_required: Invalid API key · Please run /login".into(),
        }
    }

    fn many() -> Vec<StatusSection> {
        let part = |title, count| StatusSection {
            title,
            style: RED,
            entries: (0..count).map(entry).collect(),
        };
        vec![
            part("needs your input", 60),
            part("waiting", 3),
            part("running", 1),
        ]
    }

    #[test]
    fn every_section_gets_its_share_of_the_screen() {
        assert_eq!(entries_per_section(&many(), None), [MAX_RUNS, 3, 1]);
        // Headers take three lines, every entry two.
        assert_eq!(entries_per_section(&many(), Some(9)), [1, 1, 1]);
        assert_eq!(entries_per_section(&many(), Some(21)), [5, 3, 1]);
        assert_eq!(entries_per_section(&many(), Some(0)), [0, 0, 0]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in [10, 20, 40, 80, 99, 100, 200] {
            for line in entry(1).lines(columns) {
                let plain = strip_str(&line).to_string();
                assert!(width(&plain) <= columns, "{columns}: {plain}");
            }
        }
        let narrow: Vec<_> = entry(1).lines(40).collect();
        let narrow: Vec<_> = narrow
            .iter()
            .map(|line| strip_str(line).to_string())
            .collect();
        assert_eq!(
            narrow,
            [
                "  k3v901  claude -p 'fix the…  3 min ago",
                "          abort in 23 h; auth_required:…"
            ]
        );
    }
}
