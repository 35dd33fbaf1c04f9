//! Runs a check command of the user, which succeeds or fails by its exit code.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::{
    AttemptStopRequest, CapturedOutput, ChildExitStatus, ChildSupervisor, DiscardOutput,
    ProcessError, ProcessSpec, ProcessTimeouts, Stdin,
};

/// A shell command and its working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckShellCommand {
    /// The command line for `sh`.
    pub line: String,
    /// The working directory; ours by default.
    pub folder: Option<PathBuf>,
    /// Variables in addition to ours.
    pub env: Vec<(OsString, OsString)>,
    /// The timeout.
    pub timeout: Duration,
}

/// The result of a check command.
#[derive(Debug, Clone)]
pub struct CheckResult {
    /// The exit status.
    pub status: ChildExitStatus,
    /// True if it timed out.
    pub timed_out: bool,
    /// Its standard output.
    pub stdout: CapturedOutput,
    /// Its standard error.
    pub stderr: CapturedOutput,
}

impl CheckResult {
    /// Returns true if the check passed.
    pub fn passed(&self) -> bool {
        self.status.is_success() && !self.timed_out
    }
}

/// Runs a check with empty standard input, and leaves no process behind.
pub async fn run_check(
    supervisor: &mut ChildSupervisor,
    check: &CheckShellCommand,
    stop: watch::Receiver<AttemptStopRequest>,
) -> Result<CheckResult, ProcessError> {
    let spec = ProcessSpec {
        folder: check.folder.clone(),
        env: check.env.clone(),
        limits: ProcessTimeouts {
            timeout: Some(check.timeout),
            ..ProcessTimeouts::default()
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
