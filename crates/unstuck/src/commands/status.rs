//! `unstuck status`: what runs, what waits until when and why, and what needs you, on one screen.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use unstuck_core::Timestamp;
use unstuck_core::episode::Status;
use unstuck_core::guard::show;
use unstuck_store::{Question, QuestionFilter, RunFilter};

use crate::history::{History, Listed};
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::place::{homely, project_named};
use crate::run_words::what;
use crate::session::Session;
use crate::show_text::cut;
use crate::{answering, clock, runtime, state_text};

/// The exit code when a person is needed, as of `unstuck exec`.
const NEEDS_YOU: u8 = 3;
/// So many lines of each part.
const SHOWN: usize = 10;
/// How wide it is where nobody says.
const USUAL: usize = 100;
/// Runs that a person stopped longer ago are not shown.
const STOPPED_LATELY: Duration = Duration::from_secs(24 * 3600);

/// Show what runs, what waits and what needs you
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck status
  unstuck status --project .
  unstuck status --short          (one line for prompts and status bars)
  unstuck status --json | jq -r '.[] | .id + \" \" + .state.state'

Exit codes:
  0    nothing needs you
  3    something needs you: an open request, or a run that crashed
  2    unstuck error (usage, configuration, database)")]
pub(crate) struct StatusArgs {
    /// Only the project that this directory belongs to
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Print one line, and nothing if there is nothing to tell
    #[arg(long, conflicts_with = "json")]
    short: bool,

    /// Print the runs as a JSON array, each with its `state`
    #[arg(long)]
    json: bool,
}

/// What is shown, each part newest first.
struct Shown {
    running: Vec<Listed>,
    waiting: Vec<Listed>,
    needs_you: Vec<Listed>,
    crashed: Vec<Listed>,
    stopped: Vec<Listed>,
}

pub(crate) fn run(args: &StatusArgs, session: &Session<'_>, out: &mut Output) -> Result<ExitCode> {
    let now = clock::now().at;
    let project = args.project.as_deref().map(project_named).transpose()?;
    // Requests whose time is over are settled by this.
    let questions = answering::open(
        &QuestionFilter {
            project: project.clone(),
            ..QuestionFilter::default()
        },
        session,
    )?;
    let listed = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let filter = RunFilter {
            project,
            status: vec![
                Status::Running,
                Status::Waiting,
                Status::AwaitingHuman,
                Status::Crashed,
                Status::Interrupted,
            ],
            ..RunFilter::default()
        };
        history.listed(&filter, now).await
    })?;
    let lately = now.before(STOPPED_LATELY);
    let is_shown = |one: &Listed| {
        one.run.status != Status::Interrupted || one.run.finished.is_some_and(|at| at >= lately)
    };
    let listed: Vec<_> = listed.into_iter().filter(is_shown).collect();
    let needs = |one: &Listed| matches!(one.run.status, Status::AwaitingHuman | Status::Crashed);
    let code = match listed.iter().any(needs) || !questions.is_empty() {
        true => ExitCode::from(NEEDS_YOU),
        false => ExitCode::SUCCESS,
    };
    if args.json {
        out.json(&listed)?;
    } else if args.short {
        short(&Shown::of(listed), now, out)?;
    } else {
        whole(&Shown::of(listed), &questions, now, session, out)?;
    }
    Ok(code)
}

impl Shown {
    fn of(listed: Vec<Listed>) -> Self {
        let mut shown = Self {
            running: Vec::new(),
            waiting: Vec::new(),
            needs_you: Vec::new(),
            crashed: Vec::new(),
            stopped: Vec::new(),
        };
        for one in listed {
            let part = match one.run.status {
                Status::Running => &mut shown.running,
                Status::Waiting => &mut shown.waiting,
                Status::AwaitingHuman => &mut shown.needs_you,
                Status::Crashed => &mut shown.crashed,
                Status::Interrupted => &mut shown.stopped,
                Status::Succeeded | Status::Recovered | Status::Failed => continue,
            };
            part.push(one);
        }
        shown
    }
}

/// One line for a prompt or a status bar.
fn short(shown: &Shown, now: Timestamp, out: &mut Output) -> Result<()> {
    let count = |part: &[Listed], word: &str| match part.len() {
        0 => None,
        n => Some(format!("{n} {word}")),
    };
    let until = shown.waiting.iter().filter_map(|one| one.state.until).min();
    let until = until.filter(|until| *until > now);
    let until = until.map_or_else(String::new, |until| {
        format!(" until {}", clock::shown(until))
    });
    let parts = [
        count(&shown.needs_you, "need you"),
        count(&shown.crashed, "crashed"),
        count(&shown.running, "running"),
        count(&shown.waiting, "waiting").map(|text| text + &until),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        writeln!(out, "{}", parts.join(", "))?;
    }
    Ok(())
}

fn whole(
    shown: &Shown,
    questions: &[Question],
    now: Timestamp,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    let columns = out.columns().unwrap_or(USUAL);
    let is_idle = shown.running.is_empty()
        && shown.waiting.is_empty()
        && shown.needs_you.is_empty()
        && shown.crashed.is_empty();
    if is_idle {
        writeln!(out, "Nothing is active, and nothing needs you.")?;
    }
    let request = |one: &Listed| questions.iter().find(|question| question.run == one.run.id);
    part("needs you", RED, &shown.needs_you, columns, out, |one| {
        let question = request(one);
        let reason = question.map(|question| show(&question.asked.reason));
        let reason = reason.or_else(|| one.run.reason.clone());
        reason.unwrap_or_default()
    })?;
    part("crashed", RED, &shown.crashed, columns, out, |one| {
        let wait = state_text::wait(&one.state, now);
        wait.map_or_else(String::new, |wait| format!("was waiting {wait}"))
    })?;
    part("waiting", YELLOW, &shown.waiting, columns, out, |one| {
        state_text::wait(&one.state, now).unwrap_or_default()
    })?;
    part("running", GREEN, &shown.running, columns, out, |one| {
        format!("since {}", clock::shown(one.run.started))
    })?;
    part("stopped", YELLOW, &shown.stopped, columns, out, |_| {
        String::new()
    })?;
    let next = [
        (!shown.needs_you.is_empty()).then(|| session.line("inbox")),
        (!shown.crashed.is_empty()).then(|| session.line("resume --all")),
    ];
    let next: Vec<_> = next.into_iter().flatten().collect();
    if !next.is_empty() {
        writeln!(out, "\n{DIM}{}{DIM:#}", next.join("  ·  "))?;
    }
    Ok(())
}

/// The runs of one state, a line or two each.
fn part(
    title: &str,
    style: anstyle::Style,
    runs: &[Listed],
    columns: usize,
    out: &mut Output,
    detail: impl Fn(&Listed) -> String,
) -> Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    writeln!(out, "{style}{title}{style:#} ({})", runs.len())?;
    for one in runs.iter().take(SHOWN) {
        let run = &one.run;
        let project = homely(&run.project);
        let room = columns.saturating_sub(run.id.short().len() + project.chars().count() + 6);
        let command = cut(&what(run), room.max(16));
        let id = run.id.short();
        writeln!(
            out,
            "  {BOLD}{id}{BOLD:#}  {command}  {DIM}{project}{DIM:#}"
        )?;
        let detail = detail(one);
        if !detail.is_empty() {
            let detail = cut(&detail, columns.saturating_sub(10).max(20));
            writeln!(out, "          {DIM}{detail}{DIM:#}")?;
        }
    }
    if runs.len() > SHOWN {
        writeln!(out, "  {DIM}… and {} more{DIM:#}", runs.len() - SHOWN)?;
    }
    Ok(())
}
