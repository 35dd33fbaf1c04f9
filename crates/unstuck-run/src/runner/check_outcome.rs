//! A check that must pass, and what is told when it does not.

use unstuck_core::event::{FailedCheck, OutputExcerpt};
use unstuck_core::{Failure, Layer};

use super::excerpt::{MAX_EXCERPT_BYTES, tail_excerpt};
use crate::process::ProcessResult;

/// How much of what a check wrote is told.
const MAX_COMPLAINT_BYTES: usize = 1500;

/// What a check that must pass came to.
pub(super) struct CheckOutcome {
    pub(super) line: String,
    pub(super) ended: ProcessResult,
}

impl CheckOutcome {
    /// What was seen of it.
    pub(super) fn failure(&self) -> Failure {
        let ended = &self.ended;
        Failure {
            command: Some(self.line.clone()),
            exit_code: Some(ended.status.code()),
            stdout: Some(ended.stdout.text().into()),
            stderr: Some(ended.stderr.text().into()),
            timed_out: ended.timed_out.is_some(),
            ..Failure::new(Layer::Infra)
        }
    }

    /// What is kept of it.
    pub(super) fn to_failed_check(&self) -> FailedCheck {
        FailedCheck {
            command: self.line.clone(),
            exit_code: self.ended.status.code(),
            excerpt: OutputExcerpt {
                stdout: tail_excerpt(&self.ended.stdout.text(), MAX_EXCERPT_BYTES),
                stderr: tail_excerpt(&self.ended.stderr.text(), MAX_EXCERPT_BYTES),
            },
        }
    }

    /// What is wrong, with the end of what the check wrote.
    pub(super) fn failure_message(&self) -> String {
        check_failure_message(&self.to_failed_check(), "")
    }
}

/// What is wrong according to a check, with what else is known behind the exit code and the end of what it wrote.
pub(super) fn check_failure_message(check: &FailedCheck, known: &str) -> String {
    let written = [check.excerpt.stdout.as_str(), check.excerpt.stderr.as_str()].join("\n");
    let (line, code) = (&check.command, check.exit_code);
    let text = format!("the check `{line}` failed with exit code {code}{known}");
    match written.trim() {
        "" => text,
        written => format!("{text}:\n{}", tail_excerpt(written, MAX_COMPLAINT_BYTES)),
    }
}
