//! Reads failures from flags, files and standard input, shared by all commands that take one.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::Value;
use unstuck_core::failure::signal_number;
use unstuck_core::{ClockReading, Failure, FailureInputRecord, FailureLayer, Timestamp};

use super::jsonl_input;
use crate::clock;
use crate::error_report::error_with_hint;
use crate::input_file::open_input;
use crate::output::Output;

/// One failure described by flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Failure")]
pub(crate) struct FailureArgs {
    /// Text to classify [default: standard input, unless --stdout, --stderr or --body is given]
    pub(crate) file: Option<PathBuf>,

    /// Layer in which the failure occurred [default: inferred from the other flags]
    #[arg(long, value_enum)]
    layer: Option<LayerArg>,

    /// LLM provider (anthropic, openai, gemini, …)
    #[arg(long)]
    provider: Option<String>,

    /// Tool name (bash, npm, git, …)
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Agent name (claude, codex, …); implies that an agent process failed
    #[arg(long, value_name = "NAME", conflicts_with = "tool")]
    agent: Option<String>,

    /// Command line that was executed
    #[arg(long)]
    pub(crate) command: Option<String>,

    /// HTTP status
    #[arg(long, value_parser = clap::value_parser!(u16).range(100..600))]
    status: Option<u16>,

    /// HTTP header, as "name: value" (repeatable)
    #[arg(long, value_name = "HEADER", value_parser = parse_header)]
    header: Vec<(String, String)>,

    /// Exit code
    #[arg(long, allow_negative_numbers = true)]
    exit_code: Option<i32>,

    /// Signal that ended the process, by number or name
    #[arg(long, value_parser = |name: &str| signal_number(name).ok_or("unknown signal"))]
    signal: Option<i32>,

    /// The process timed out
    #[arg(long)]
    timed_out: bool,

    /// File with the HTTP response body
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,

    /// File with the standard output
    #[arg(long, value_name = "FILE")]
    stdout: Option<PathBuf>,

    /// File with the standard error
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,

    /// Error that an output check found (repeatable)
    #[arg(long, value_name = "TEXT")]
    validation_error: Vec<String>,

    /// The output should have contained a diff
    #[arg(long)]
    expects_diff: bool,

    /// Time of the failure, to resolve clock times in the text [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LayerArg {
    Api,
    Tool,
    Agent,
    Infra,
}

impl From<LayerArg> for FailureLayer {
    fn from(layer: LayerArg) -> Self {
        match layer {
            LayerArg::Api => Self::Api,
            LayerArg::Tool => Self::Tool,
            LayerArg::Agent => Self::Agent,
            LayerArg::Infra => Self::Infra,
        }
    }
}

impl FailureArgs {
    /// Reads the failure from flags, files and standard input, and its time.
    pub(crate) fn read(&self) -> Result<(Failure, ClockReading)> {
        let headers = self
            .header
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect::<std::collections::BTreeMap<_, _>>();
        let case = FailureInputRecord {
            layer: self
                .layer
                .map(FailureLayer::from)
                .or(self.agent.as_ref().map(|_| FailureLayer::Agent)),
            provider: self.provider.clone(),
            tool: self
                .agent
                .clone()
                .or_else(|| self.tool.clone())
                .or_else(|| self.program()),
            command: self.command.clone(),
            status: self.status,
            headers: (!headers.is_empty()).then_some(headers),
            exit_code: self.exit_code,
            signal: self.signal,
            timed_out: Some(self.timed_out),
            validation_errors: (!self.validation_error.is_empty())
                .then(|| self.validation_error.clone()),
            expects_diff: self.expects_diff.then_some(true),
            ..FailureInputRecord::default()
        };
        let mut failure = case.into_failure();
        failure.body = self.body.as_deref().map(read_text).transpose()?;
        failure.stdout = self.stdout.as_deref().map(read_text).transpose()?;
        failure.stderr = self.stderr.as_deref().map(read_text).transpose()?;
        if self.layer.is_none() && self.agent.is_none() && failure.body.is_some() {
            failure.layer = FailureLayer::Api;
        }
        self.add_main_text(&mut failure)?;
        Ok((failure, parse_now(self.now.as_deref())?))
    }

    /// Assigns the text from FILE or standard input to the most likely stream for the layer.
    fn add_main_text(&self, failure: &mut Failure) -> Result<()> {
        let given = failure.body.is_some() || failure.stdout.is_some() || failure.stderr.is_some();
        let told = given
            || self.exit_code.is_some()
            || self.status.is_some()
            || self.signal.is_some()
            || self.timed_out
            || !self.validation_error.is_empty();
        let text = match &self.file {
            Some(path) => Some(read_text(path)?),
            None if given || (told && io::stdin().is_terminal()) => None,
            None if io::stdin().is_terminal() => {
                return Err(error_with_hint(
                    "no input",
                    "pass a file, or pipe in text: some-command 2>&1 | unstuck classify --exit-code 1",
                ));
            }
            None => Some(read_stdin()?),
        };
        match (text, failure.layer) {
            (None, _) => {}
            (Some(text), FailureLayer::Api) => failure.body = Some(text),
            (Some(text), FailureLayer::Agent) => failure.stdout = Some(text),
            (Some(text), _) => failure.stderr = Some(text),
        }
        Ok(())
    }

    fn program(&self) -> Option<String> {
        let first = self
            .command
            .as_deref()?
            .split_whitespace()
            .find(|word| !word.contains('='))?;
        Some(first.rsplit('/').next().unwrap_or(first).to_owned())
    }
}

/// Processes each case of a file or of standard input, one per line.
pub(crate) fn answer_each_case(
    file: Option<&Path>,
    out: &mut Output,
    mut answer: impl FnMut(FailureInputRecord, ClockReading) -> Result<Value>,
) -> Result<()> {
    jsonl_input::each_line(file, out, |line| {
        let case: FailureInputRecord = serde_json::from_value(line)?;
        let now = parse_now(case.now.as_deref())?;
        answer(case, now)
    })
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected \"name: value\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn read_text(path: &Path) -> Result<unstuck_core::LossyText> {
    if path == Path::new("-") {
        return read_stdin();
    }
    let mut bytes = Vec::new();
    let read = open_input(path)?.read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes.into())
}

fn read_stdin() -> Result<unstuck_core::LossyText> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .context("cannot read standard input")?;
    Ok(bytes.into())
}

/// Parses the given time or returns the current one; an offset such as +01:00 also sets the time zone for a bare "3pm".
pub(crate) fn parse_now(stated: Option<&str>) -> Result<ClockReading> {
    let Some(text) = stated else {
        return Ok(clock::now());
    };
    let at: Timestamp = text.parse()?;
    Ok(utc_offset(text)
        .and_then(|seconds| ClockReading::at_offset(at, seconds))
        .unwrap_or_else(|| clock::local_reading(at)))
}

fn utc_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.rfind(['+', '-']).filter(|at| *at > 10)? {
        at if text.as_bytes()[at] == b'-' => (-1, &text[at + 1..]),
        at => (1, &text[at + 1..]),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or(rest.split_at_checked(2)?);
    Some(sign * (hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().unwrap_or(0) * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_offset_is_parsed_and_z_has_none() {
        assert_eq!(utc_offset("2026-11-15T10:00:00+05:30"), Some(19_800));
        assert_eq!(utc_offset("2026-11-15T10:00:00-0800"), Some(-28_800));
        assert_eq!(utc_offset("2026-11-15T10:00:00Z"), None);
    }
}
