//! Executes an approved repair in the sandbox that the settings require.

use std::path::Path;

use tokio::sync::watch;
use tokio::time::Instant;
use unstuck_core::RunId;
use unstuck_core::event::RepairConfinement;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::sandbox::wire::SandboxCommand;
use unstuck_repair::sandbox::{
    ConfinementLevel, ConfinementReport, NetworkAccess, ProcessAccess, SandboxMode,
    describe_git_effects, process_scope,
};

use super::candidate_policy_check::ApprovedRepair;
use super::coordinator::RepairCoordinator;
use super::sandbox_probe_cache::SandboxProbeCache;
use super::snapshot::{self, SnapshotPhase};
use crate::process::{AttemptStopRequest, ReaperProgram};
use crate::repair_execution::{RepairError, RepairExecutionResult, RepairExecutor, RepairJob};

impl RepairCoordinator<'_> {
    /// Runs the repair until none of its processes is left.
    pub(in crate::runner) async fn run(
        &self,
        allowed: &ApprovedRepair,
        run: &RunId,
        stop: watch::Receiver<AttemptStopRequest>,
    ) -> Result<RepairExecutionResult, RepairError> {
        self.context.last_started.set(Some(Instant::now()));
        let (terms, workshop) = (self.settings, self.context);
        let environment = self.environment(allowed.root.path());
        let environment = environment.with_variable("UNSTUCK_RUN", run.as_str());
        let mut job = RepairJob::new(
            &allowed.approved,
            &allowed.root,
            &allowed.folder,
            environment,
        );
        job.timeout = allowed.timeout;
        job.watched_files.clone_from(&allowed.watched_files);
        job.profile.mode = self.sandbox_mode();
        job.profile.network = if terms.network {
            NetworkAccess::On
        } else {
            NetworkAccess::Off
        };
        job.profile.writable.clone_from(&terms.write_paths);
        job.profile
            .hidden_paths
            .extend_from_slice(workshop.hidden_paths);
        // Its output is redacted with all known secrets before it is reported.
        let redactor = Redactor::new([]);
        let temporary = std::env::temp_dir();
        let program = ReaperProgram::own();
        let mut executor = RepairExecutor::start(&program, workshop.state, &temporary, redactor)?;
        executor.run(&job, stop).await
    }

    /// Returns the environment variables of a repair.
    fn environment(&self, root: &Path) -> RepairEnvironmentVariables {
        let owner = self.context.environment.iter().cloned();
        RepairEnvironmentVariables::from_owner(owner, root, &self.settings.env_keep)
    }

    /// Returns the sandbox mode: complete if the sandbox was complete when the repair was planned or shown to a human.
    fn sandbox_mode(&self) -> SandboxMode {
        let found = self.context.confinement.get();
        let is_complete = found.is_some_and(|found| found.level == ConfinementLevel::Full);
        match self.settings.sandbox {
            SandboxMode::BestEffort if is_complete && !self.settings.accepts_incomplete => {
                SandboxMode::Required
            }
            demand => demand,
        }
    }

    /// Probes the sandbox features, once per process.
    pub(in crate::runner) async fn probe_sandbox(&self) {
        if self.context.confinement.get().is_some() {
            return;
        }
        let found = match self.settings.sandbox {
            SandboxMode::Off => ConfinementReport::none("disabled by configuration"),
            SandboxMode::Required | SandboxMode::BestEffort => {
                Box::pin(self.probed_confinement()).await
            }
        };
        // A concurrent probe has found the same.
        let _ = self.context.confinement.set(found);
    }

    async fn probed_confinement(&self) -> ConfinementReport {
        let (workshop, temporary) = (self.context, std::env::temp_dir());
        let remembered = SandboxProbeCache::new(workshop.state, self.project);
        if let Some(found) = remembered.read() {
            return found;
        }
        let program = ReaperProgram::own();
        let redactor = Redactor::new([]);
        let executor = RepairExecutor::start(&program, workshop.state, &temporary, redactor);
        let found = match executor {
            Ok(mut executor) => {
                let environment = self.environment(self.project);
                executor.probe_sandbox(self.project, &environment).await
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(found) => {
                remembered.save(&found);
                found
            }
            Err(error) => ConfinementReport::none(format!("sandbox probe failed: {error}")),
        }
    }

    /// Returns the conditions under which a command would run, for its approval.
    pub(in crate::runner) fn repair_conditions(&self, command: &str) -> RepairConfinement {
        let found = self.context.confinement.get();
        let (mut sandbox, mut missing) = match found {
            Some(found) => (found.level.name(), found.missing.clone()),
            None => ("unknown", vec!["not probed".to_owned()]),
        };
        let looser = match process_scope(command) {
            ProcessAccess::Own => None,
            ProcessAccess::Signals => Some("may signal other processes"),
            ProcessAccess::Inspect => {
                Some("needs access to other processes, which the complete sandbox does not allow")
            }
        };
        if let Some(reason) = looser.filter(|_| sandbox == "full") {
            sandbox = "partial";
            missing.push(reason.to_owned());
        }
        let variables = self.environment(self.project).pairs().into_iter();
        let variables = variables.map(|(name, _)| name.to_string_lossy().into_owned());
        RepairConfinement {
            sandbox: sandbox.to_owned(),
            missing,
            network: self.settings.network,
            variables: variables.chain(["UNSTUCK_RUN".to_owned()]).collect(),
            effects: describe_git_effects(&SandboxCommand::from_command(command)),
        }
    }

    /// Takes a snapshot of the work tree; does nothing if the project is not a git repository.
    pub(in crate::runner) async fn snapshot_tree(
        &self,
        run: &RunId,
        repair: &str,
        moment: SnapshotPhase,
    ) -> Option<String> {
        snapshot::take_snapshot(self.project, self.context.state, run, repair, moment).await
    }
}
