//! The requirements on classification, each test with their ids, and what else must not go wrong.

mod agents;
mod answers;
mod categories;
mod traps;

use unstuck_core::{Category, Failure, Kind, Level};

use super::{diagnose, kind};

fn category(failure: &Failure) -> Category {
    diagnose(failure).category()
}

/// An agent that ran in a pipeline: its code, what it wrote, and what the checks found wrong.
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
