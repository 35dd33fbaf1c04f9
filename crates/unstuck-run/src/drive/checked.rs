//! A check that must pass, and what is told when it does not.

use unstuck_core::event::{Excerpt, FailedCheck};
use unstuck_core::{Failure, Layer};

use super::tail::{EXCERPT, end_of};
use crate::process::Ended;

/// How much of what a check wrote is told.
const COMPLAINT: usize = 1500;

/// What a check that must pass came to.
pub(super) struct Checked {
    pub(super) line: String,
    pub(super) ended: Ended,
}

impl Checked {
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
    pub(super) fn kept(&self) -> FailedCheck {
        FailedCheck {
            line: self.line.clone(),
            exit_code: self.ended.status.code(),
            excerpt: Excerpt {
                stdout: end_of(&self.ended.stdout.text(), EXCERPT),
                stderr: end_of(&self.ended.stderr.text(), EXCERPT),
            },
        }
    }

    /// What is wrong, with the end of what the check wrote.
    pub(super) fn complaint(&self) -> String {
        complaint(&self.kept(), "")
    }
}

/// What is wrong according to a check, with what else is known behind the exit code and the end of what it wrote.
pub(super) fn complaint(check: &FailedCheck, known: &str) -> String {
    let written = [check.excerpt.stdout.as_str(), check.excerpt.stderr.as_str()].join("\n");
    let (line, code) = (&check.line, check.exit_code);
    let text = format!("the check `{line}` failed with exit code {code}{known}");
    match written.trim() {
        "" => text,
        written => format!("{text}:\n{}", end_of(written, COMPLAINT)),
    }
}
