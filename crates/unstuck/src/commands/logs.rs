//! `unstuck logs`: what the attempts of a run wrote.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use unstuck_core::RunId;
use unstuck_run::folder;

use crate::history::History;
use crate::output::{DIM, Output};
use crate::report::refused;
use crate::supervise::Session;
use crate::{clock, completion, runtime};

/// How often is looked for more.
const LOOK: Duration = Duration::from_millis(200);

/// Show what the attempts of a run wrote
///
/// Standard output goes to standard output, standard error to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck logs                     (all attempts of the newest run)
  unstuck logs k3v9 --attempt 2
  unstuck logs -f                  (and what comes, until the run ends)
  unstuck logs k3v9 --json         (the files, and how large they are)")]
pub(crate) struct LogsArgs {
    /// The run: the first letters of its id [default: the newest]
    #[arg(value_name = "RUN", add = completion::runs())]
    run: Option<String>,

    /// Only this attempt
    #[arg(long, short, value_name = "N")]
    attempt: Option<u32>,

    /// Go on until the run ends
    #[arg(long, short)]
    follow: bool,

    /// Print the list of the files as a JSON array
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

/// One stream of one attempt on disk.
#[derive(Debug, Serialize)]
struct Kept {
    id: String,
    attempt: u32,
    stream: &'static str,
    path: PathBuf,
    bytes: u64,
}

pub(crate) fn run(args: &LogsArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    runtime::block_on(async {
        let history = History::open(session.store).await?;
        let run = history.find(args.run.as_deref()).await?;
        let folder = folder::path_of(Path::new(&run.project), &run.id);
        let files = kept(&run.id, &folder, args.attempt);
        if args.json {
            return out.json(&files);
        }
        if files.is_empty() && !args.follow {
            return Err(refused(
                format!("run {} has left no output", run.id),
                format!("it would be in {}", folder.display()),
            ));
        }
        follow(args, &history, &run.id, &folder, out).await
    })
}

/// The files of a run, in the order of its attempts.
fn kept(run: &RunId, folder: &Path, only: Option<u32>) -> Vec<Kept> {
    let mut files = Vec::new();
    for attempt in 1..=10_000 {
        let folder = folder.join(format!("attempt-{attempt}"));
        if !folder.is_dir() {
            break;
        }
        if only.is_some_and(|only| only != attempt) {
            continue;
        }
        for stream in ["stdout", "stderr"] {
            let path = folder.join(format!("{stream}.log"));
            if let Ok(data) = path.metadata() {
                files.push(Kept {
                    id: format!("{run}/{attempt}/{stream}"),
                    attempt,
                    stream,
                    bytes: data.len(),
                    path,
                });
            }
        }
    }
    files
}

/// Prints what is there, and what comes if that is wanted.
async fn follow(
    args: &LogsArgs,
    history: &History,
    run: &RunId,
    folder: &Path,
    out: &mut Output,
) -> Result<()> {
    let mut told = 0;
    let mut shown = std::collections::BTreeMap::new();
    loop {
        // Looked up first: what comes between the two looks is printed by the next round.
        let goes_on = history.drives(run, clock::now().at).await?;
        for file in kept(run, folder, args.attempt) {
            if file.attempt > told {
                told = file.attempt;
                out.flush()?;
                head(told)?;
            }
            let from = shown.entry(file.path.clone()).or_insert(0);
            *from += print(&file, *from, out)?;
        }
        out.flush()?;
        if !args.follow || !goes_on {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn head(attempt: u32) -> Result<()> {
    let mut to = anstream::stderr();
    writeln!(to, "{DIM}── attempt {attempt} ──{DIM:#}")?;
    Ok(())
}

/// Prints a file from a place on, and tells how much that was.
fn print(file: &Kept, from: u64, out: &mut Output) -> Result<u64> {
    let opened = File::open(&file.path);
    let mut source = opened.with_context(|| format!("cannot read {}", file.path.display()))?;
    source.seek(SeekFrom::Start(from))?;
    let mut source = source.take(file.bytes.saturating_sub(from));
    let copied = match file.stream {
        "stdout" => io::copy(&mut source, out)?,
        _ => io::copy(&mut source, &mut io::stderr().lock())?,
    };
    Ok(copied)
}
