//! `unstuck logs`: prints the output of the attempts of a run.

mod print;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use unstuck_core::RunId;
use unstuck_core::event::RoleInstance;
use unstuck_core::views::{AttemptOutcome, AttemptView, RunTimeline};
use unstuck_run::run_dir;

use self::print::{PrintedBytes, print_new};
use crate::command_context::CommandContext;
use crate::error_report::refusal;
use crate::output::{DIM, Output};
use crate::redacted_stderr::RedactedStderr;
use crate::run_history::RunHistory;
use crate::run_ref::{RunRef, attempt_name, part_name};
use crate::run_supervision::state_dir;
use crate::run_title::is_gateway_client;
use crate::{async_runtime, clock, completion_candidates};

/// Interval for polling for more output.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Show the output of the attempts of a run
///
/// Prints the stdout of attempts to stdout and their stderr to stderr. For a pipeline, each line starts with
/// the name of its role, unless you select one role or attempt. On a terminal, prints only text and colors;
/// with `--raw`, or in a file or pipe, prints every byte.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck logs                     (all attempts of the newest run)
  unstuck logs k3v9 --attempt 2
  unstuck logs k3v9 --role tester  (one role of a pipeline; the same as k3v9/tester)
  unstuck logs -f                  (keep printing until the run ends)
  unstuck logs k3v9 --json         (log files and their sizes)")]
pub(crate) struct LogsArgs {
    /// Run, optionally followed by /ROLE and /ATTEMPT [default: the newest run]
    #[arg(
        value_name = "RUN[/ROLE][/N]",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion_candidates::runs_and_roles()
    )]
    run: Option<String>,

    /// Only this role of a pipeline
    #[arg(long, short, value_name = "ROLE")]
    role: Option<String>,

    /// Only this attempt; with a role, of its newest iteration
    #[arg(long, short, value_name = "N")]
    attempt: Option<u32>,

    /// Keep printing until the run ends
    #[arg(long, short)]
    follow: bool,

    /// Print the exact bytes on a terminal, including control sequences
    #[arg(long)]
    raw: bool,

    /// Print the list of files as a JSON array
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

impl LogsArgs {
    fn run_ref(&self) -> Result<RunRef<'_>> {
        let named = RunRef::parse(self.run.as_deref())?;
        Ok(RunRef {
            role: self.role.as_deref().or(named.role),
            attempt: self.attempt.or(named.attempt),
            ..named
        })
    }
}

/// One output stream of one attempt on disk.
#[derive(Debug, Serialize)]
struct LogFile {
    id: String,
    attempt: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    part: Option<RoleInstance>,
    stream: &'static str,
    path: PathBuf,
    bytes: u64,
    /// True if more output may follow.
    #[serde(skip)]
    is_open: bool,
}

pub(crate) fn run(args: &LogsArgs, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let named = args.run_ref()?;
    async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let run = history.find(named.run_prefix).await?;
        let timeline = history.timeline(&run.id).await?;
        if !args.follow {
            named.find_attempts(&timeline)?;
        }
        let folder = run_dir::run_files_dir(&state_dir(session.store), &run.id);
        let files = log_files(&timeline, &folder, named);
        if args.json {
            return out.write_json(&files);
        }
        if is_gateway_client(&run) {
            return Err(refusal(
                format!(
                    "run {} is a gateway client session; its output is not recorded",
                    run.id
                ),
                format!("`unstuck show {}` shows its API calls", run.id.short()),
            ));
        }
        if files.is_empty() && !args.follow {
            return Err(refusal(
                format!("run {} has no output", run.id),
                format!(
                    "no files in {}, nor in {} (earlier versions)",
                    folder.display(),
                    run_dir::project_copy_dir(Path::new(&run.project), &run.id).display()
                ),
            ));
        }
        follow(args, named, &history, &run.id, &folder, out).await
    })
}

/// Returns the files of the selected attempts in the order in which they started.
fn log_files(timeline: &RunTimeline, folder: &Path, named: RunRef<'_>) -> Vec<LogFile> {
    let attempts = named.matching_attempts(timeline).into_iter();
    attempts
        .flat_map(|attempt| log_files_of_attempt(attempt, timeline, folder))
        .collect()
}

fn log_files_of_attempt(
    attempt: &AttemptView,
    timeline: &RunTimeline,
    folder: &Path,
) -> impl Iterator<Item = LogFile> + use<> {
    let part = attempt.part.as_ref();
    let instances = timeline.run.instances(part);
    let folder = run_dir::attempt_dir(folder, part, instances, attempt.number);
    let attempt = attempt.clone();
    ["stdout", "stderr"].into_iter().filter_map(move |stream| {
        let path = folder.join(format!("{stream}.log"));
        Some(LogFile {
            id: format!("{}/{stream}", attempt.id),
            attempt: attempt.index,
            part: attempt.part.clone(),
            stream,
            bytes: path.metadata().ok()?.len(),
            path,
            is_open: attempt.outcome == AttemptOutcome::Running,
        })
    })
}

/// Prints existing output, and new output if following.
async fn follow(
    args: &LogsArgs,
    named: RunRef<'_>,
    history: &RunHistory,
    run: &RunId,
    folder: &Path,
    out: &mut Output,
) -> Result<()> {
    let mut told = 0;
    let mut printed = PrintedBytes::default();
    loop {
        // Looked up first: output written between the two steps is printed in the next round.
        let goes_on = args.follow && history.is_driven(run, clock::now().at).await?;
        let timeline = history.timeline(run).await?;
        for attempt in named.matching_attempts(&timeline) {
            let name = line_prefix(attempt, &timeline, named);
            for mut file in log_files_of_attempt(attempt, &timeline, folder) {
                if attempt.index > told {
                    told = attempt.index;
                    out.flush()?;
                    print_attempt_heading(&attempt_name(attempt, &timeline.run))?;
                }
                file.is_open &= goes_on;
                print_new(&file, name.as_deref(), args.raw, &mut printed, out)?;
            }
        }
        out.flush()?;
        if !goes_on {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the prefix of each line if several attempts may write at the same time.
fn line_prefix(attempt: &AttemptView, timeline: &RunTimeline, named: RunRef<'_>) -> Option<String> {
    let part = attempt.part.as_ref()?;
    let all = named.role.is_none() && named.attempt.is_none();
    (all || named.has_instances(&timeline.run)).then(|| part_name(part, &timeline.run))
}

fn print_attempt_heading(attempt: &str) -> Result<()> {
    let mut to = RedactedStderr::auto();
    writeln!(to, "{DIM}── {attempt} ──{DIM:#}")?;
    Ok(())
}
