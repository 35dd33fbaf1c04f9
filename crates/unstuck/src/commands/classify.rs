//! `unstuck classify`: what kind of failure is this?

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use unstuck_core::{Case, Classifier, Diagnosis};

use super::case_input::{FailureArgs, now};
use crate::output::Output;

/// Tell what kind of failure a text is
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  npm test 2>&1 | unstuck classify --exit-code 1
  unstuck classify --agent claude --exit-code 1 agent.log
  unstuck classify --provider openai --status 429 --header 'retry-after: 12' --body answer.json --json
  unstuck classify --jsonl < cases.jsonl > answers.jsonl")]
pub(crate) struct ClassifyArgs {
    #[command(flatten)]
    failure: FailureArgs,

    /// Print the diagnosis as JSON
    #[arg(long)]
    json: bool,

    /// Read one case a line (JSON) from FILE or standard input, print one answer a line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

/// The diagnosis as machines read it.
#[derive(Serialize)]
pub(crate) struct Answer<'d> {
    kind: &'static str,
    category: &'static str,
    level: Option<&'static str>,
    retryable: bool,
    retry_after_s: Option<f64>,
    confidence: f64,
    evidence: &'d unstuck_core::Evidence,
    fingerprint: &'d str,
    truncated: bool,
    message: &'d str,
    hint: &'d str,
}

impl<'d> From<&'d Diagnosis> for Answer<'d> {
    fn from(diagnosis: &'d Diagnosis) -> Self {
        Self {
            kind: diagnosis.kind.name(),
            category: diagnosis.category().name(),
            level: diagnosis.level.map(|level| level.name()),
            retryable: diagnosis.retryable(),
            retry_after_s: diagnosis.retry_after.map(|wait| wait.as_secs_f64()),
            confidence: (f64::from(diagnosis.confidence) * 100.0).round() / 100.0,
            evidence: &diagnosis.evidence,
            fingerprint: &diagnosis.fingerprint,
            truncated: diagnosis.truncated,
            message: &diagnosis.message,
            hint: &diagnosis.hint,
        }
    }
}

pub(crate) fn run(args: &ClassifyArgs, out: &mut Output) -> Result<()> {
    let classifier = Classifier::built_in();
    if args.jsonl {
        return lines(args.failure.file.as_ref(), classifier, out);
    }
    let (failure, now) = args.failure.read()?;
    let diagnosis = classifier.diagnose(&failure, &now);
    if args.json {
        return out.json(&Answer::from(&diagnosis));
    }
    show(&diagnosis, out)
}

fn show(diagnosis: &Diagnosis, out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "{} ({}, {:.0} % sure)",
        diagnosis.kind,
        diagnosis.category(),
        f64::from(diagnosis.confidence) * 100.0
    )?;
    if !diagnosis.evidence.line.is_empty() {
        writeln!(out, "  seen   {}", diagnosis.evidence.line)?;
    }
    writeln!(out, "  rule   {}", diagnosis.evidence.rule)?;
    Ok(())
}

fn lines(file: Option<&PathBuf>, classifier: &Classifier, out: &mut Output) -> Result<()> {
    let input: Box<dyn Read> = match file {
        Some(path) => Box::new(
            std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?,
        ),
        None => Box::new(std::io::stdin()),
    };
    for (number, line) in BufReader::new(input).split(b'\n').enumerate() {
        let line = line.context("cannot read the cases")?;
        if !line.trim_ascii().is_empty() {
            writeln!(out, "{}", answer(&line, number + 1, classifier))?;
        }
    }
    Ok(())
}

/// The answer to one line; what is wrong with a line is told in its place.
fn answer(line: &[u8], number: usize, classifier: &Classifier) -> Value {
    let refused =
        |id: Value, problem: String| json!({ "id": id, "line": number, "error": problem });
    let value: Value = match serde_json::from_str(&String::from_utf8_lossy(line)) {
        Ok(value) => value,
        Err(error) => return refused(Value::Null, format!("not JSON: {error}")),
    };
    let id = value.get("id").cloned().unwrap_or(Value::Null);
    let case = match serde_json::from_value::<Case>(value) {
        Ok(case) => case,
        Err(error) => return refused(id, error.to_string()),
    };
    let now = match now(case.now.as_deref()) {
        Ok(now) => now,
        Err(error) => return refused(id, error.to_string()),
    };
    let diagnosis = classifier.diagnose(&case.into_failure(), &now);
    match serde_json::to_value(Answer::from(&diagnosis)) {
        Ok(Value::Object(fields)) => Value::Object(
            std::iter::once(("id".to_owned(), id))
                .chain(fields)
                .collect(),
        ),
        _ => refused(id, "the answer cannot be written".to_owned()),
    }
}
