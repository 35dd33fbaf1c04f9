//! How the end of a run is told to whoever started it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use unstuck_core::event::RunFinished;
use unstuck_core::money::rounded;
use unstuck_run::drive::{ChildEnd, Finished, write_whole};

use crate::history::History;
use crate::output::Output;
use crate::report::is_closed_pipe;
use crate::runtime;
use crate::session::Session;
use crate::supervise::Supervised;

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    id: &'a str,
    #[serde(flatten)]
    end: RunFinished,
    success: bool,
    /// How the command's own process ended, in its newest attempt.
    child: Option<ChildEnd>,
}

/// Where the JSON about a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonTarget {
    /// Nobody wants it.
    Nowhere,
    /// To standard output, as its last line.
    Stdout,
    /// To a file.
    File(PathBuf),
}

impl JsonTarget {
    /// Returns the target of `--json`, which is followed by nothing or by the name of a file.
    pub(super) fn of_flag(flag: Option<&str>) -> Self {
        match flag {
            None => Self::Nowhere,
            Some("") => Self::Stdout,
            Some(file) => Self::File(PathBuf::from(file)),
        }
    }
}

impl From<bool> for JsonTarget {
    fn from(wanted: bool) -> Self {
        if wanted { Self::Stdout } else { Self::Nowhere }
    }
}

/// The end of a run for whoever started it.
pub(super) fn tell(
    supervised: &Supervised,
    json: &JsonTarget,
    out: &mut Output,
) -> Result<ExitCode> {
    let finished = &supervised.finished;
    match json {
        JsonTarget::Nowhere => {}
        JsonTarget::Stdout => match write_line(supervised, out) {
            // Whoever read our output has seen enough, and a failure stays one.
            Err(error) if is_closed_pipe(&error) => {}
            written => written?,
        },
        JsonTarget::File(path) => {
            let mut text = serde_json::to_vec(&summary(finished))?;
            text.push(b'\n');
            write_whole(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(exit_code(finished))
}

/// Writes the summary on a line of its own, whatever the command wrote last.
fn write_line(supervised: &Supervised, out: &mut Output) -> Result<()> {
    if supervised.is_line_open {
        writeln!(out)?;
    }
    out.json_line(&summary(&supervised.finished))?;
    out.finish()
}

fn exit_code(finished: &Finished) -> ExitCode {
    let code = finished.end.exit_code;
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// The end of a run for machines.
pub(super) fn summary(finished: &Finished) -> Summary<'_> {
    Summary {
        id: finished.run.as_str(),
        end: RunFinished {
            cost_usd: finished.end.cost_usd.map(rounded),
            ..finished.end.clone()
        },
        success: finished.end.outcome.is_success(),
        child: finished.child,
    }
}

/// The end of a pipeline for whoever started it, with its roles.
pub(super) fn tell_with_roles(
    finished: &Finished,
    json: bool,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if json {
        let mut told = serde_json::to_value(summary(finished))?;
        let timeline = runtime::block_on(async {
            let history = History::open(session.store).await?;
            history.timeline(&finished.run).await
        })?;
        told["roles"] = serde_json::to_value(&timeline.sessions)?;
        out.json_line(&told)?;
    }
    Ok(exit_code(finished))
}
