//! `unstuck logs`: what the attempts of a run wrote.

mod print;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use unstuck_core::RunId;
use unstuck_core::episode::{AttemptOutcome, AttemptStory, Timeline};
use unstuck_core::event::Part;
use unstuck_run::folder;

use self::print::{Printed, print};
use crate::history::History;
use crate::messages::Messages;
use crate::named::{Named, attempt_name, part_name};
use crate::output::{DIM, Output};
use crate::report::refused;
use crate::run_words::is_clients;
use crate::session::Session;
use crate::supervise::state_folder;
use crate::{clock, completion, runtime};

/// How often is looked for more.
const LOOK: Duration = Duration::from_millis(200);

/// Show what the attempts of a run wrote
///
/// Standard output goes to standard output, standard error to standard error. Of a pipeline, each line has the name of
/// its role in front, unless only one role or attempt is shown. On a terminal only text and colours are shown; `--raw`, a file
/// or a pipe gets every byte.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck logs                     (all attempts of the newest run)
  unstuck logs k3v9 --attempt 2
  unstuck logs k3v9 --role tester  (one role of a pipeline; the same as k3v9/tester)
  unstuck logs -f                  (and what comes, until the run ends)
  unstuck logs k3v9 --json         (the files, and how large they are)")]
pub(crate) struct LogsArgs {
    /// The run, and behind slashes a role of it and an attempt [default: the newest run]
    #[arg(
        value_name = "RUN[/ROLE][/N]",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion::runs_and_roles()
    )]
    run: Option<String>,

    /// Only this role of a pipeline
    #[arg(long, short, value_name = "ROLE")]
    role: Option<String>,

    /// Only this attempt; with a role, of its newest iteration
    #[arg(long, short, value_name = "N")]
    attempt: Option<u32>,

    /// Go on until the run ends
    #[arg(long, short)]
    follow: bool,

    /// Print the exact bytes also on a terminal, with all that it obeys
    #[arg(long)]
    raw: bool,

    /// Print the list of the files as a JSON array
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

impl LogsArgs {
    fn named(&self) -> Result<Named<'_>> {
        let named = Named::read(self.run.as_deref())?;
        Ok(Named {
            role: self.role.as_deref().or(named.role),
            attempt: self.attempt.or(named.attempt),
            ..named
        })
    }
}

/// One stream of one attempt on disk.
#[derive(Debug, Serialize)]
struct Kept {
    id: String,
    attempt: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    part: Option<Part>,
    stream: &'static str,
    path: PathBuf,
    bytes: u64,
    /// Whether more may be written to it.
    #[serde(skip)]
    open: bool,
}

pub(crate) fn run(args: &LogsArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let named = args.named()?;
    runtime::block_on(async {
        let history = History::open(session.store).await?;
        let run = history.find(named.letters).await?;
        let timeline = history.timeline(&run.id).await?;
        if !args.follow {
            named.attempts(&timeline)?;
        }
        let folder = folder::files_of(&state_folder(session.store), &run.id);
        let files = kept(&timeline, &folder, named);
        if args.json {
            return out.json(&files);
        }
        if is_clients(&run) {
            return Err(refused(
                format!(
                    "run {} is a client's own session: its output is its client's",
                    run.id
                ),
                format!("`unstuck show {}` tells how its calls went", run.id.short()),
            ));
        }
        if files.is_empty() && !args.follow {
            return Err(refused(
                format!("run {} has left no output", run.id),
                format!(
                    "it would be in {}; runs of earlier versions have theirs only in {}",
                    folder.display(),
                    folder::copies_of(Path::new(&run.project), &run.id).display()
                ),
            ));
        }
        follow(args, named, &history, &run.id, &folder, out).await
    })
}

/// The files of the attempts that are meant, in the order in which they began.
fn kept(timeline: &Timeline, folder: &Path, named: Named<'_>) -> Vec<Kept> {
    let attempts = named.meant(timeline).into_iter();
    attempts
        .flat_map(|attempt| streams(attempt, timeline, folder))
        .collect()
}

fn streams(
    attempt: &AttemptStory,
    timeline: &Timeline,
    folder: &Path,
) -> impl Iterator<Item = Kept> + use<> {
    let part = attempt.part.as_ref();
    let instances = timeline.run.instances(part);
    let folder = folder::attempt_of(folder, part, instances, attempt.number);
    let attempt = attempt.clone();
    ["stdout", "stderr"].into_iter().filter_map(move |stream| {
        let path = folder.join(format!("{stream}.log"));
        Some(Kept {
            id: format!("{}/{stream}", attempt.id),
            attempt: attempt.index,
            part: attempt.part.clone(),
            stream,
            bytes: path.metadata().ok()?.len(),
            path,
            open: attempt.outcome == AttemptOutcome::Running,
        })
    })
}

/// Prints what is there, and what comes if that is wanted.
async fn follow(
    args: &LogsArgs,
    named: Named<'_>,
    history: &History,
    run: &RunId,
    folder: &Path,
    out: &mut Output,
) -> Result<()> {
    let mut told = 0;
    let mut printed = Printed::default();
    loop {
        // Looked up first: what comes between the two looks is printed by the next round.
        let goes_on = args.follow && history.drives(run, clock::now().at).await?;
        let timeline = history.timeline(run).await?;
        for attempt in named.meant(&timeline) {
            let name = prefix(attempt, &timeline, named);
            for mut file in streams(attempt, &timeline, folder) {
                if attempt.index > told {
                    told = attempt.index;
                    out.flush()?;
                    head(&attempt_name(attempt, &timeline.run))?;
                }
                file.open &= goes_on;
                print(&file, name.as_deref(), args.raw, &mut printed, out)?;
            }
        }
        out.flush()?;
        if !goes_on {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What stands in front of each line of an attempt, where several may write side by side.
fn prefix(attempt: &AttemptStory, timeline: &Timeline, named: Named<'_>) -> Option<String> {
    let part = attempt.part.as_ref()?;
    let all = named.role.is_none() && named.attempt.is_none();
    (all || named.is_several(&timeline.run)).then(|| part_name(part, &timeline.run))
}

fn head(attempt: &str) -> Result<()> {
    let mut to = Messages::auto();
    writeln!(to, "{DIM}── {attempt} ──{DIM:#}")?;
    Ok(())
}
