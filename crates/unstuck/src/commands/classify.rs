//! `unstuck classify`: classifies an error message.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use unstuck_core::duration::HumanDuration;
use unstuck_core::knowledge::DiagnosisKnowledge;
use unstuck_core::{Category, Diagnosis, RecoveryLevel};

use super::failure_input::{self, FailureArgs};
use crate::config::Config;
use crate::output::{DIM, GREEN, Output, RED, YELLOW};

/// Classify an error message
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  npm test 2>&1 | unstuck classify --exit-code 1
  unstuck classify --agent claude --exit-code 1 agent.log
  unstuck classify --provider openai --status 429 --header 'retry-after: 12' --body answer.json
  unstuck classify --jsonl < cases.jsonl > answers.jsonl")]
pub(crate) struct ClassifyArgs {
    #[command(flatten)]
    failure: FailureArgs,

    /// Print the diagnosis as JSON
    #[arg(long)]
    json: bool,

    /// Read one JSON case per line from FILE or standard input, and print one result per line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

/// A diagnosis in JSON form.
#[derive(Serialize)]
struct DiagnosisJson<'d> {
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

impl<'d> From<&'d Diagnosis> for DiagnosisJson<'d> {
    fn from(diagnosis: &'d Diagnosis) -> Self {
        Self {
            kind: diagnosis.kind.name(),
            category: diagnosis.category().name(),
            level: diagnosis.level.map(|level| level.name()),
            retryable: diagnosis.is_retryable(),
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

pub(crate) fn run(args: &ClassifyArgs, config: &Config, out: &mut Output) -> Result<()> {
    let classifier = config.classifier()?;
    if args.jsonl {
        return failure_input::answer_each_case(args.failure.file.as_deref(), out, |case, now| {
            let diagnosis = classifier.diagnose(&case.into_failure(), &now);
            Ok(serde_json::to_value(DiagnosisJson::from(&diagnosis))?)
        });
    }
    let (failure, now) = args.failure.read()?;
    let diagnosis = classifier.diagnose(&failure, &now);
    if args.json {
        return out.write_json(&DiagnosisJson::from(&diagnosis));
    }
    show(&diagnosis, classifier.knowledge(), out)
}

/// Prints the diagnosis: kind, confidence, matched line and recommended action.
pub(crate) fn show(
    diagnosis: &Diagnosis,
    knowledge: &DiagnosisKnowledge,
    out: &mut Output,
) -> Result<()> {
    let style = match diagnosis.category() {
        Category::None => GREEN,
        Category::Fatal | Category::Code => RED,
        _ => YELLOW,
    };
    let title = &knowledge.kind(diagnosis.kind).title;
    let sure = f64::from(diagnosis.confidence) * 100.0;
    writeln!(
        out,
        "{style}{}{style:#}  {title} ({}, confidence {sure:.0}%)",
        diagnosis.kind,
        diagnosis.category()
    )?;
    let mut line = |label: &str, text: &str| match text {
        "" => Ok(()),
        text => writeln!(out, "  {DIM}{label:<8}{DIM:#} {text}"),
    };
    line("evidence", &diagnosis.evidence.line)?;
    line(
        "wait",
        &diagnosis
            .retry_after
            .map(|wait| format!("{} (stated)", HumanDuration(wait)))
            .unwrap_or_default(),
    )?;
    line(
        "note",
        if diagnosis.truncated {
            "response truncated at its length limit"
        } else {
            ""
        },
    )?;
    line("next", next_step(diagnosis))?;
    line("hint", &diagnosis.hint)?;
    line("rule", &diagnosis.evidence.rule)?;
    Ok(())
}

fn next_step(diagnosis: &Diagnosis) -> &'static str {
    match (diagnosis.level, diagnosis.category()) {
        (Some(RecoveryLevel::Same), _) => "retry after a wait (level 1)",
        (Some(RecoveryLevel::Alternative), _) => "retry with changes, see `unstuck plan` (level 2)",
        (Some(RecoveryLevel::Clarify), _) => "retry with additional instructions (level 3)",
        (Some(RecoveryLevel::Escalate), _) => "needs your input (level 4)",
        (None, Category::Code) => "not retried: fix the code",
        (None, _) => "",
    }
}
