//! The result of a check command and the message if it fails.

use unstuck_core::event::FailedCheck;
use unstuck_core::{Failure, FailureLayer};

use super::excerpt::{MAX_EXCERPT_BYTES, tail_excerpt};
use crate::process::ProcessResult;

/// Largest part of a check's output that a message contains.
const MAX_COMPLAINT_BYTES: usize = 1500;

/// The result of a check command.
pub(super) struct CheckOutcome {
    pub(super) line: String,
    pub(super) ended: ProcessResult,
}

impl CheckOutcome {
    /// Returns the failure to diagnose.
    pub(super) fn failure(&self) -> Failure {
        let ended = &self.ended;
        Failure {
            command: Some(self.line.clone()),
            exit_code: Some(ended.status.code()),
            stdout: Some(ended.stdout.text().into()),
            stderr: Some(ended.stderr.text().into()),
            timed_out: ended.timed_out.is_some(),
            ..Failure::new(FailureLayer::Infra)
        }
    }

    /// Returns the part that is stored.
    pub(super) fn to_failed_check(&self) -> FailedCheck {
        FailedCheck {
            command: self.line.clone(),
            exit_code: self.ended.status.code(),
            stdout: tail_excerpt(&self.ended.stdout.text(), MAX_EXCERPT_BYTES),
            stderr: tail_excerpt(&self.ended.stderr.text(), MAX_EXCERPT_BYTES),
        }
    }

    /// Returns the failure message, with the end of the check's output.
    pub(super) fn failure_message(&self) -> String {
        check_failure_message(&self.to_failed_check(), "")
    }
}

/// Returns the message about a failed check: exit code, further facts and the end of its output.
pub(super) fn check_failure_message(check: &FailedCheck, known: &str) -> String {
    let written = [check.stdout.as_str(), check.stderr.as_str()].join("\n");
    let (line, code) = (&check.command, check.exit_code);
    let text = format!("the check `{line}` failed with exit code {code}{known}");
    match written.trim() {
        "" => text,
        written => format!("{text}:\n{}", tail_excerpt(written, MAX_COMPLAINT_BYTES)),
    }
}
