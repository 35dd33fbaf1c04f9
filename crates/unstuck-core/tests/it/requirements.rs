//! The classification requirements, each test with its ids, and known pitfalls.

mod agents;
mod answers;
mod categories;
mod traps;

use unstuck_core::{Category, Failure, FailureKind, RecoveryLevel};

use super::{diagnose, kind};

fn category(failure: &Failure) -> Category {
    diagnose(failure).category()
}

/// Returns the failure of an agent in a pipeline: its exit code, its output, and the findings of the checks.
fn agent(code: i32, stdout: &str, stderr: &str, checks: &[&str]) -> Failure {
    Failure::agent("implementer")
        .with_exit_code(code)
        .with_stdout(stdout)
        .with_stderr(stderr)
        .with_validation_errors(checks.iter().copied())
}

fn answer(status: u16, body: &str) -> Failure {
    Failure::api("openai").with_status(status).with_body(body)
}
