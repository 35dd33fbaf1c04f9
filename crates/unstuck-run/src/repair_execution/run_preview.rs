//! Previews a command without approval: in the complete sandbox, on an overlay that receives all its writes.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::{ApprovedCommand, ProposalError};
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::preview::{self, Preview, PreviewError, PreviewStore, UnfinishedPreview};
use unstuck_repair::project_dir::{ProjectRoot, RepairWorkingDir};
use unstuck_repair::sandbox::{
    ConfinementLevel, NetworkAccess, SandboxOverlayDirs, SandboxProfile, protected_paths,
    run_as_user,
};

use crate::process::{AttemptStopRequest, OutputSink};

use super::error::RepairError;
use super::executor::{RepairExecutor, git_dirs};
use super::job::RepairJob;
use super::outcome::RepairExecutionResult;

/// Number of last lines of each stream that are kept.
const MAX_LINES: usize = 8;
/// Number of ticks between two checks of the written size.
const CHECK_EVERY_TICKS: u32 = 5;

/// A command to preview.
#[derive(Debug)]
pub struct PreviewJob<'a> {
    /// The command.
    pub command: &'a str,
    /// The project.
    pub root: &'a ProjectRoot,
    /// The working directory.
    pub folder: &'a RepairWorkingDir,
    /// The environment variables.
    pub environment: RepairEnvironmentVariables,
    /// The network access; its effects there are real.
    pub network: NetworkAccess,
    /// Directories and files of unstuck itself, beside its state directory, which are hidden.
    pub hidden_paths: Vec<PathBuf>,
    /// The timeout.
    pub timeout: Duration,
    /// The limits of its writes.
    pub bounds: preview::PreviewLimits,
}

/// An error of a preview. A command that fails is not an error.
#[derive(Debug, thiserror::Error)]
pub enum PreviewJobError {
    /// The command is not a valid proposal.
    #[error("{0}")]
    Command(#[from] ProposalError),
    /// It could not be run, or not in the complete sandbox.
    #[error(transparent)]
    Repair(#[from] RepairError),
    /// The changes cannot be shown.
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// We are root and the project is not: its owner, as whom it would run, has no access to the overlay.
    #[error("the project belongs to another user (uid {0})")]
    OtherOwner(u32),
    /// It was stopped from outside.
    #[error("the command was stopped before it finished")]
    Stopped,
    /// Processes of it could not be ended, so they may still write.
    #[error("{0} processes of the command could not be killed")]
    SurvivingProcesses(u32),
}

impl RepairExecutor {
    /// Runs a command and returns the changes that it would make. The project is not changed.
    pub async fn preview(
        &mut self,
        trial: &PreviewJob<'_>,
        previews: &PreviewStore,
        now: Timestamp,
        stop: watch::Receiver<AttemptStopRequest>,
    ) -> Result<Preview, PreviewJobError> {
        let approved = ApprovedCommand::for_preview(trial.command)?;
        if let Some(user) = run_as_user(trial.root) {
            return Err(PreviewJobError::OtherOwner(user.uid));
        }
        let draft = previews.prepare(trial.root.path(), trial.bounds, now)?;
        let environment = trial.environment.clone();
        let variables = environment.pairs();
        let mut job = RepairJob {
            profile: preview_profile(trial, &draft),
            timeout: trial.timeout,
            ..RepairJob::new(&approved, trial.root, trial.folder, environment)
        };
        let git = git_dirs(&job, &variables);
        let references = git.referenced.clone();
        job.git = Some(git);
        let mut watch = OverlayUsageWatch {
            draft: &draft,
            ticks: 0,
            is_full: false,
        };
        let ran = self.run_with(&job, &mut watch, stop).await?;
        let is_full = watch.is_full || draft.is_full();
        check_completed(&ran, is_full)?;
        let protected: Vec<_> = protected_paths()
            .iter()
            .cloned()
            .chain(references)
            .collect();
        Ok(draft.finish(executed_command(trial, &ran), &protected, now)?)
    }
}

/// Returns the profile of a complete sandbox without any real writable path.
fn preview_profile(trial: &PreviewJob<'_>, draft: &UnfinishedPreview) -> SandboxProfile {
    SandboxProfile {
        network: trial.network,
        hidden_paths: trial.hidden_paths.clone(),
        overlay: Some(SandboxOverlayDirs {
            lower: draft.project().to_owned(),
            upper: draft.upper(),
            work: draft.work(),
        }),
        ..SandboxProfile::strict(draft.project())
    }
}

/// Checks that the overlay contains everything the command did, and that nothing else can change it.
fn check_completed(ran: &RepairExecutionResult, is_full: bool) -> Result<(), PreviewJobError> {
    if ran.survivors > 0 {
        return Err(PreviewJobError::SurvivingProcesses(ran.survivors));
    }
    if is_full {
        let why = "the command was stopped because it wrote too much data".to_owned();
        return Err(PreviewError::TooMuch(why).into());
    }
    if ran.stopped {
        return Err(PreviewJobError::Stopped);
    }
    match ran.confinement.level {
        ConfinementLevel::Full => Ok(()),
        ConfinementLevel::Partial | ConfinementLevel::None if ran.timed_out => {
            Err(PreviewJobError::Stopped)
        }
        ConfinementLevel::Partial | ConfinementLevel::None => Err(RepairError::SandboxSetup {
            operation: "confine the command as required for a preview".to_owned(),
            reason: ran.confinement.missing.join("; "),
        }
        .into()),
    }
}

fn executed_command(
    trial: &PreviewJob<'_>,
    ran: &RepairExecutionResult,
) -> preview::PreviewCommandExecution {
    let last = |text: &str| {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        lines[lines.len().saturating_sub(MAX_LINES)..].to_vec()
    };
    let discarded = ran.discarded_writes.iter();
    preview::PreviewCommandExecution {
        command: trial.command.to_owned(),
        working_dir: trial.folder.relative().display().to_string(),
        exit_code: ran.status.code(),
        timed_out: ran.timed_out,
        duration: ran.duration,
        network: trial.network == NetworkAccess::On,
        output: [last(&ran.stdout), last(&ran.stderr)].concat(),
        discarded_writes: discarded.map(|path| path.display().to_string()).collect(),
    }
}

/// Checks the size of the command's writes from time to time, and stops it at the limit.
struct OverlayUsageWatch<'a> {
    draft: &'a UnfinishedPreview,
    ticks: u32,
    is_full: bool,
}

impl OutputSink for OverlayUsageWatch<'_> {
    fn on_stdout(&mut self, _bytes: &[u8]) {}

    fn on_stderr(&mut self, _bytes: &[u8]) {}

    fn wants_ticks(&self) -> bool {
        true
    }

    fn on_tick(&mut self) {
        self.ticks += 1;
        if self.ticks.is_multiple_of(CHECK_EVERY_TICKS) {
            self.is_full = self.draft.is_full();
        }
    }

    fn is_open(&self) -> bool {
        !self.is_full
    }
}
