//! A repair to run.

use std::time::Duration;

use unstuck_core::command_policy::{ApprovalOrigin, ApprovedCommand};
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::project_dir::{ProjectRoot, RepairWorkingDir};
use unstuck_repair::sandbox::wire::SandboxCommand;
use unstuck_repair::sandbox::{
    FileOwnerScope, ProcessAccess, ProjectRepositories, SandboxMode, SandboxProfile, file_scope,
    process_scope,
};
use unstuck_repair::watched_files::WatchedFile;

/// A repair to run, with the handles on which its approval is based.
#[derive(Debug)]
pub struct RepairJob<'a> {
    /// The approved command, the only text that runs.
    pub approved: &'a ApprovedCommand,
    /// The project.
    pub root: &'a ProjectRoot,
    /// The working directory.
    pub folder: &'a RepairWorkingDir,
    /// The environment variables.
    pub environment: RepairEnvironmentVariables,
    /// The sandbox profile.
    pub profile: SandboxProfile,
    /// The watched files as they were when the repair was approved.
    pub watched_files: Vec<WatchedFile>,
    /// The git repositories of the project, if they are known already.
    pub git: Option<ProjectRepositories>,
    /// The timeout.
    pub timeout: Duration,
}

impl<'a> RepairJob<'a> {
    /// Returns a repair with the strictest profile in which its command can work.
    pub fn new(
        approved: &'a ApprovedCommand,
        root: &'a ProjectRoot,
        folder: &'a RepairWorkingDir,
        environment: RepairEnvironmentVariables,
    ) -> Self {
        let profile = SandboxProfile {
            process_scope: process_scope(approved.command_text()),
            file_scope: file_scope(approved.command_text()),
            ..SandboxProfile::strict(root.path())
        };
        Self {
            approved,
            root,
            folder,
            environment,
            profile,
            watched_files: Vec::new(),
            git: None,
            timeout: Duration::from_secs(120),
        }
    }

    /// Returns the commands for the sandbox.
    pub(super) fn steps(&self) -> SandboxCommand {
        SandboxCommand::from_command(self.approved.command_text())
    }

    /// Returns true if it is not approved and writes to no overlay.
    pub(super) fn is_unapproved_without_overlay(&self) -> bool {
        self.approved.origin() == ApprovalOrigin::Preview && self.profile.overlay.is_none()
    }

    /// Returns the effective profile: a command that is neither pre-approved nor seen by a human requires a complete
    /// sandbox.
    pub(super) fn effective_profile(&self) -> SandboxProfile {
        let mut profile = self.profile.clone();
        profile.root = self.root.path().to_owned();
        let is_unseen = match self.approved.origin() {
            ApprovalOrigin::Allowance | ApprovalOrigin::Preview => true,
            ApprovalOrigin::List | ApprovalOrigin::Person => false,
        };
        if is_unseen {
            profile.mode = SandboxMode::Required;
            profile.process_scope = ProcessAccess::Own;
            profile.file_scope = FileOwnerScope::Own;
        }
        profile
    }
}
