//! A repair that is to be run.

use std::time::Duration;

use unstuck_core::command_policy::{ApprovalOrigin, ApprovedCommand};
use unstuck_repair::environment::RepairEnvironment;
use unstuck_repair::project_dir::{ProjectDir, ProjectRoot};
use unstuck_repair::sandbox::wire::CommandSteps;
use unstuck_repair::sandbox::{
    FileScope, ProcessScope, SandboxMode, SandboxProfile, file_scope, process_scope,
};
use unstuck_repair::watched_files::WatchedFile;

/// A repair that is to be run, with the handles on which it was decided.
#[derive(Debug)]
pub struct RepairJob<'a> {
    /// The text that was approved, the only one that runs.
    pub approved: &'a ApprovedCommand,
    /// The project.
    pub root: &'a ProjectRoot,
    /// The folder to run it in.
    pub folder: &'a ProjectDir,
    /// The variables that it gets.
    pub environment: RepairEnvironment,
    /// How far it is confined.
    pub profile: SandboxProfile,
    /// The files that decide what it does, as they were when it was decided on.
    pub watched_files: Vec<WatchedFile>,
    /// How long it may take.
    pub timeout: Duration,
}

impl<'a> RepairJob<'a> {
    /// A repair with the strictest profile that its text can work in.
    pub fn new(
        approved: &'a ApprovedCommand,
        root: &'a ProjectRoot,
        folder: &'a ProjectDir,
        environment: RepairEnvironment,
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
            timeout: Duration::from_secs(120),
        }
    }

    /// What to run, as it is told to the sandbox.
    pub(super) fn steps(&self) -> CommandSteps {
        CommandSteps::from_command(self.approved.command_text())
    }

    /// Whether nobody approved it and nothing takes what it writes.
    pub(super) fn is_unapproved_without_overlay(&self) -> bool {
        self.approved.origin() == ApprovalOrigin::Preview && self.profile.overlay.is_none()
    }

    /// The profile that really counts: what nobody listed and nobody has seen never runs without a whole sandbox.
    pub(super) fn effective_profile(&self) -> SandboxProfile {
        let mut profile = self.profile.clone();
        profile.root = self.root.path().to_owned();
        let is_unseen = match self.approved.origin() {
            ApprovalOrigin::Allowance | ApprovalOrigin::Preview => true,
            ApprovalOrigin::List | ApprovalOrigin::Person => false,
        };
        if is_unseen {
            profile.mode = SandboxMode::Required;
            profile.process_scope = ProcessScope::Own;
            profile.file_scope = FileScope::Own;
        }
        profile
    }
}
