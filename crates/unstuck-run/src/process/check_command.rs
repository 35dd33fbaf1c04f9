//! Runs a command of the user that tells by its exit code whether something holds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::{
    CapturedOutput, ChildStatus, DiscardOutput, ProcessError, ProcessLimits, ProcessSpec, Stdin,
    StopRequest, Supervisor,
};

/// A line for `sh` and where to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckCommand {
    /// The line.
    pub line: String,
    /// The folder it runs in; ours by default.
    pub folder: Option<PathBuf>,
    /// Variables in addition to ours.
    pub env: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub timeout: Duration,
}

/// What a check said.
#[derive(Debug, Clone)]
pub struct CheckResult {
    /// How it ended.
    pub status: ChildStatus,
    /// Whether it took too long.
    pub timed_out: bool,
    /// What it wrote to standard output.
    pub stdout: CapturedOutput,
    /// What it wrote to standard error.
    pub stderr: CapturedOutput,
}

impl CheckResult {
    /// Whether it holds.
    pub fn passed(&self) -> bool {
        self.status.is_success() && !self.timed_out
    }
}

/// Runs a check with nothing on its standard input, and leaves nothing of it behind.
pub async fn run_check(
    supervisor: &mut Supervisor,
    check: &CheckCommand,
    stop: watch::Receiver<StopRequest>,
) -> Result<CheckResult, ProcessError> {
    let spec = ProcessSpec {
        folder: check.folder.clone(),
        env: check.env.clone(),
        limits: ProcessLimits {
            timeout: Some(check.timeout),
            ..ProcessLimits::default()
        },
        ..ProcessSpec::shell(&check.line)
    };
    let ended = supervisor
        .run(&spec, &mut Stdin::null(), &mut DiscardOutput, stop)
        .await?;
    Ok(CheckResult {
        status: ended.status,
        timed_out: ended.timed_out.is_some(),
        stdout: ended.stdout,
        stderr: ended.stderr,
    })
}
