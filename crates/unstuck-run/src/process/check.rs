//! Runs a command of the user that tells by its exit code whether something holds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::{Captured, Discard, Limits, ProcessError, Spec, Status, Stdin, Stop, Supervisor};

/// A line for `sh` and where to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The line.
    pub line: String,
    /// The folder it runs in; ours by default.
    pub folder: Option<PathBuf>,
    /// Variables in addition to ours.
    pub set: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub timeout: Duration,
}

/// What a check said.
#[derive(Debug, Clone)]
pub struct CheckResult {
    /// How it ended.
    pub status: Status,
    /// Whether it took too long.
    pub timed_out: bool,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
}

impl CheckResult {
    /// Whether it holds.
    pub fn passed(&self) -> bool {
        self.status.is_success() && !self.timed_out
    }
}

/// Runs a check with nothing on its standard input, and leaves nothing of it behind.
pub async fn check(
    supervisor: &mut Supervisor,
    check: &Check,
    stop: watch::Receiver<Stop>,
) -> Result<CheckResult, ProcessError> {
    let spec = Spec {
        folder: check.folder.clone(),
        set: check.set.clone(),
        limits: Limits {
            timeout: Some(check.timeout),
            ..Limits::default()
        },
        ..Spec::shell(&check.line)
    };
    let ended = supervisor
        .run(&spec, &mut Stdin::null(), &mut Discard, stop)
        .await?;
    Ok(CheckResult {
        status: ended.status,
        timed_out: ended.timed_out.is_some(),
        stdout: ended.stdout,
        stderr: ended.stderr,
    })
}
