//! Reports the result of a run.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use unstuck_core::event::RunFinished;
use unstuck_core::money::round_usd;
use unstuck_run::runner::{AttemptProcessExit, RunResult, write_atomically};

use crate::async_runtime;
use crate::command_context::CommandContext;
use crate::error_report::is_closed_pipe;
use crate::output::Output;
use crate::run_history::RunHistory;
use crate::run_supervision::SupervisedRunEnd;

/// The JSON result of a run.
#[derive(Debug, Serialize)]
pub(super) struct RunResultJson<'a> {
    id: &'a str,
    #[serde(flatten)]
    end: RunFinished,
    success: bool,
    /// Exit status of the command's own process in its newest attempt.
    child: Option<AttemptProcessExit>,
}

/// Target of the JSON result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonResultDestination {
    /// No JSON output.
    None,
    /// Standard output, as its last line.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl JsonResultDestination {
    /// Parses the optional value of `--json`: none for standard output, or a file name.
    pub(super) fn from_flag(flag: Option<&str>) -> Self {
        match flag {
            None => Self::None,
            Some("") => Self::Stdout,
            Some(file) => Self::File(PathBuf::from(file)),
        }
    }
}

impl From<bool> for JsonResultDestination {
    fn from(wanted: bool) -> Self {
        if wanted { Self::Stdout } else { Self::None }
    }
}

/// Reports the result of a run.
pub(super) fn report_result(
    supervised: &SupervisedRunEnd,
    json: &JsonResultDestination,
    out: &mut Output,
) -> Result<ExitCode> {
    let finished = &supervised.finished;
    match json {
        JsonResultDestination::None => {}
        JsonResultDestination::Stdout => match write_line(supervised, out) {
            // The reader closed our output: keep the failure as the result.
            Err(error) if is_closed_pipe(&error) => {}
            written => written?,
        },
        JsonResultDestination::File(path) => {
            let mut text = serde_json::to_vec(&result_json(finished))?;
            text.push(b'\n');
            write_atomically(path, &text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(exit_code(finished))
}

/// Writes the summary on a line of its own, even if the command's output has no final newline.
fn write_line(supervised: &SupervisedRunEnd, out: &mut Output) -> Result<()> {
    if supervised.is_line_open {
        writeln!(out)?;
    }
    out.write_json_line(&result_json(&supervised.finished))?;
    out.finish()
}

fn exit_code(finished: &RunResult) -> ExitCode {
    let code = finished.end.exit_code;
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Converts the result of a run to JSON.
pub(super) fn result_json(finished: &RunResult) -> RunResultJson<'_> {
    RunResultJson {
        id: finished.run.as_str(),
        end: RunFinished {
            cost_usd: finished.end.cost_usd.map(round_usd),
            ..finished.end.clone()
        },
        success: finished.end.outcome.is_success(),
        child: finished.child,
    }
}

/// Reports the result of a pipeline with its roles.
pub(super) fn report_pipeline_result(
    finished: &RunResult,
    json: bool,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if json {
        let mut told = serde_json::to_value(result_json(finished))?;
        let timeline = async_runtime::block_on(async {
            let history = RunHistory::open(session.store).await?;
            history.timeline(&finished.run).await
        })?;
        told["roles"] = serde_json::to_value(&timeline.sessions)?;
        out.write_json_line(&told)?;
    }
    Ok(exit_code(finished))
}
