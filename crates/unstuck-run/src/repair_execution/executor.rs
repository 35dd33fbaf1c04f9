//! Runs approved repairs, one after the other.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Uid, User};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use unstuck_core::command_policy::ApprovedCommand;
use unstuck_core::redact::Redactor;
use unstuck_files::DirHandle;
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::project_lock::ProjectRepairLock;
use unstuck_repair::sandbox::wire::{CommandExit, RunAs, SandboxRequest, SandboxWatchedFile};
use unstuck_repair::sandbox::{
    AllowedGitDirChanges, ConfinementReport, FileOwnerScope, ProjectRepositories,
    ProtectedFilesRecord, SANDBOX_ARG, SandboxMode, ScratchDir, host_paths, run_as_user,
};

use crate::process::{
    AttemptStopRequest, ChildExitStatus, ChildSupervisor, DiscardOutput, EnvInheritance,
    OutputSink, ProcessResult, ProcessSpec, ProcessTimeouts, ReaperProgram, Stdin,
};

use super::error::{RepairError, RepairIoContext};
use super::job::RepairJob;
use super::outcome::RepairExecutionResult;
use super::sandbox_connection::{SandboxConnection, SandboxReport, SandboxSetupFailure};

/// Interval at which a repair checks if another repair of the project has finished.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between the termination request and the kill.
const KILL_GRACE: Duration = Duration::from_secs(2);
const SIGKILL: i32 = 9;

/// Runs repairs.
#[derive(Debug)]
pub struct RepairExecutor {
    supervisor: ChildSupervisor,
    program: PathBuf,
    state: PathBuf,
    temporary: PathBuf,
    redactor: Redactor,
}

impl RepairExecutor {
    /// Starts an executor with a program that is both reaper and sandbox. `state` is the state directory, `temporary` a
    /// directory for temporary files; the redactor knows the secrets.
    pub fn start(
        program: &ReaperProgram,
        state: &Path,
        temporary: &Path,
        redactor: Redactor,
    ) -> Result<Self, RepairError> {
        Ok(Self {
            supervisor: ChildSupervisor::start(program)?,
            program: program.program.clone(),
            state: state.to_owned(),
            temporary: temporary.to_owned(),
            redactor,
        })
    }

    /// Runs a repair until none of its processes is left. Waits for another repair of the same project at most for the
    /// timeout of this one.
    pub async fn run(
        &mut self,
        job: &RepairJob<'_>,
        stop: watch::Receiver<AttemptStopRequest>,
    ) -> Result<RepairExecutionResult, RepairError> {
        self.run_with(job, &mut DiscardOutput, stop).await
    }

    /// Runs a repair with a sink that receives the output as it arrives. That output is not redacted.
    pub async fn run_with(
        &mut self,
        job: &RepairJob<'_>,
        sink: &mut dyn OutputSink,
        stop: watch::Receiver<AttemptStopRequest>,
    ) -> Result<RepairExecutionResult, RepairError> {
        if job.is_unapproved_without_overlay() {
            return Err(RepairError::Refused {
                reason: "this command is not approved; it can only be previewed".to_owned(),
            });
        }
        let _lock = self.lock_project(job, &stop).await?;
        let first = self.run_attempt(job, None, sink, stop.clone());
        let (ended, told) = first.await?;
        let Some(failure) = told.failure else {
            return self.repair_outcome(&ended, told);
        };
        if !(failure.without_namespaces && job.effective_profile().mode == SandboxMode::BestEffort)
        {
            return Err(failure.into());
        }
        let obstacle = format!("cannot {}: {}", failure.operation, failure.reason);
        let second = self.run_attempt(job, Some(obstacle), sink, stop);
        let (ended, told) = second.await?;
        match told.failure {
            Some(failure) => Err(failure.into()),
            None => self.repair_outcome(&ended, told),
        }
    }

    /// Probes the features of a sandbox on this machine for the owner of a project.
    pub async fn probe_sandbox(
        &mut self,
        project: &Path,
        environment: &RepairEnvironmentVariables,
    ) -> Result<ConfinementReport, RepairError> {
        let user = DirHandle::open(project).ok().and_then(run_as_user);
        let project = ScratchDir::create(&self.temporary, user).context("create a directory")?;
        let system = |error: &dyn std::fmt::Display| RepairError::Refused {
            reason: error.to_string(),
        };
        let root = ProjectRoot::open(project.path()).map_err(|error| system(&error))?;
        let folder = root
            .open_working_dir(None)
            .map_err(|error| system(&error))?;
        let nothing = ApprovedCommand::by_person("true").map_err(|error| system(&error))?;
        let mut job = RepairJob::new(&nothing, &root, &folder, environment.clone());
        job.profile.mode = SandboxMode::BestEffort;
        // Excludes the privileges of root that only work on files.
        job.profile.file_scope = FileOwnerScope::Own;
        let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
        Ok(self.run(&job, stop).await?.confinement)
    }

    async fn lock_project(
        &self,
        job: &RepairJob<'_>,
        stop: &watch::Receiver<AttemptStopRequest>,
    ) -> Result<ProjectRepairLock, RepairError> {
        let until = Instant::now() + job.timeout;
        loop {
            let lock = ProjectRepairLock::try_acquire(&self.state, job.root.path());
            if let Some(lock) = lock.context("open the lock file of the project")? {
                return Ok(lock);
            }
            if Instant::now() >= until || *stop.borrow() != AttemptStopRequest::Continue {
                return Err(RepairError::Busy);
            }
            sleep(LOCK_POLL_INTERVAL).await;
        }
    }

    async fn run_attempt(
        &mut self,
        job: &RepairJob<'_>,
        obstacle: Option<String>,
        sink: &mut dyn OutputSink,
        stop: watch::Receiver<AttemptStopRequest>,
    ) -> Result<(ProcessResult, SandboxReport), RepairError> {
        let run_as = run_as_user(job.root);
        let temporary = self.temporary_dir(job.root.path());
        let scratch =
            ScratchDir::create(temporary, run_as).context("create a private directory")?;
        let environment = job.environment.clone();
        let environment = environment.without_links_into(job.root.path());
        let environment = environment_for_user(environment, run_as).pairs();
        let host = host_paths(&environment, scratch.path(), run_as);
        let order = SandboxRequest {
            profile: self.profile_hiding_state(job),
            git: git_dirs(job, &environment),
            host,
            namespace_obstacle: obstacle,
            has_no_process_limit: false,
            run_as,
            folder: job.folder.relative().to_owned(),
            steps: job.steps(),
            watched_files: checked_files(job, &scratch).context("store the watched files")?,
            copies: Vec::new(),
        };
        let before = (order.profile.overlay.is_none()).then(|| {
            ProtectedFilesRecord::record(
                job.root,
                order.protected_paths(),
                order.git.clone(),
                false,
            )
        });
        let refusal = match &before {
            Some(before) => before.refusal(),
            None => order.git.refusal(),
        };
        if let Some(reason) = refusal {
            return Err(RepairError::Refused {
                reason: reason.to_owned(),
            });
        }
        let (link, theirs) =
            SandboxConnection::open(&order, job).context("connect to the sandbox")?;
        let spec = self.process_spec(job, environment);
        let mut stdin = Stdin::handed_over(theirs);
        let ended = self.supervisor.run(&spec, &mut stdin, sink, stop).await?;
        drop(stdin);
        let mut told = link.read_report().context("read the sandbox report")?;
        // The sandbox does this itself, unless it was killed. Then git's directory may be a private copy or not.
        if let Some(before) = before.filter(|_| !told.is_cleared) {
            let effects = AllowedGitDirChanges::from_steps(&order.steps);
            told.removed_injections
                .extend(before.restore(job.root, effects, false));
        }
        Ok((ended, told))
    }

    /// Returns a directory for temporary files that the command cannot write to.
    fn temporary_dir(&self, root: &Path) -> &Path {
        let real = self.temporary.canonicalize();
        if real.is_ok_and(|real| real.starts_with(root)) {
            &self.state
        } else {
            &self.temporary
        }
    }

    /// Returns the profile of a job in which the state directory is hidden.
    fn profile_hiding_state(&self, job: &RepairJob<'_>) -> unstuck_repair::sandbox::SandboxProfile {
        let mut profile = job.effective_profile();
        profile.hidden_paths.push(self.state.clone());
        profile
    }

    fn process_spec(
        &self,
        job: &RepairJob<'_>,
        environment: Vec<(OsString, OsString)>,
    ) -> ProcessSpec {
        ProcessSpec {
            env_inheritance: EnvInheritance::Nothing,
            env: environment,
            // The sandbox enters the directory by its handle; until then it is in one that always exists.
            folder: Some(PathBuf::from("/")),
            limits: ProcessTimeouts {
                timeout: Some(job.timeout),
                idle_timeout: None,
                grace: KILL_GRACE,
            },
            ..ProcessSpec::new(&self.program).with_args([SANDBOX_ARG])
        }
    }

    fn repair_outcome(
        &self,
        ended: &ProcessResult,
        told: SandboxReport,
    ) -> Result<RepairExecutionResult, RepairError> {
        if let Some(reason) = told.refusal {
            return Err(RepairError::Refused { reason });
        }
        // Without a report, the processes of the sandbox were killed, by us or from outside.
        let Some(sandbox) = told.confinement else {
            let is_ours = ended.was_stopped || ended.timed_out.is_some();
            return if is_ours {
                Ok(self.outcome_from_report(
                    ended,
                    &ChildExitStatus::Signaled(SIGKILL),
                    SandboxReport::default(),
                    unknown_confinement(),
                ))
            } else {
                Err(no_report_error(&ended.status))
            };
        };
        let status = match (told.end, &ended.status) {
            (Some(CommandExit::Exited(code)), _) => ChildExitStatus::Exited(code),
            (Some(CommandExit::Signaled(signal)), _) => ChildExitStatus::Signaled(signal),
            (None, ChildExitStatus::Signaled(signal)) => ChildExitStatus::Signaled(*signal),
            (None, _) => ChildExitStatus::Signaled(SIGKILL),
        };
        let rest = SandboxReport {
            confinement: None,
            refusal: None,
            ..told
        };
        Ok(self.outcome_from_report(ended, &status, rest, sandbox))
    }

    fn outcome_from_report(
        &self,
        ended: &ProcessResult,
        status: &ChildExitStatus,
        told: SandboxReport,
        sandbox: ConfinementReport,
    ) -> RepairExecutionResult {
        RepairExecutionResult {
            status: status.clone(),
            duration: ended.duration,
            timed_out: ended.timed_out.is_some(),
            stopped: ended.was_stopped,
            stdout: self.redactor.redact(&ended.stdout.text()).into_owned(),
            stderr: self.redactor.redact(&ended.stderr.text()).into_owned(),
            confinement: sandbox,
            programs: told.programs,
            leftover_count: told.leftover_count.max(ended.leftover_count),
            survivors: ended.survivor_count,
            removed_injections: told.removed_injections,
            discarded_writes: told.discarded_writes,
            conflicting_git_changes: told.conflicting_git_changes,
        }
    }
}

/// Returns the repositories of a project, and what git's configuration names in it.
pub(super) fn git_dirs(
    job: &RepairJob<'_>,
    environment: &[(OsString, OsString)],
) -> ProjectRepositories {
    if let Some(known) = &job.git {
        return known.clone();
    }
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map(|(_, home)| Path::new(home));
    ProjectRepositories::find_with_references(job.root, job.root.path(), home)
        .without_packages_installed_by(&job.steps())
}

/// Returns the watched files with private copies of the checked contents.
fn checked_files(job: &RepairJob<'_>, scratch: &ScratchDir) -> io::Result<Vec<SandboxWatchedFile>> {
    let mut files = Vec::new();
    for (number, file) in job.watched_files.iter().enumerate() {
        let copy = if file.is_written {
            None
        } else {
            Some(scratch.add_watched_copy(number, &file.bytes, file.is_program)?)
        };
        files.push(SandboxWatchedFile {
            path: PathBuf::from(&file.path),
            sha256: file.sha256(),
            copy,
        });
    }
    Ok(files)
}

impl From<SandboxSetupFailure> for RepairError {
    fn from(failure: SandboxSetupFailure) -> Self {
        Self::SandboxSetup {
            operation: failure.operation,
            reason: failure.reason,
        }
    }
}

fn unknown_confinement() -> ConfinementReport {
    ConfinementReport::none("stopped before the sandbox was set up")
}

fn no_report_error(status: &ChildExitStatus) -> RepairError {
    RepairError::SandboxSetup {
        operation: "read the sandbox report".to_owned(),
        reason: format!("the sandbox process exited with code {}", status.code()),
    }
}

/// Returns the environment of the user that runs the command, if that is not our user.
fn environment_for_user(
    environment: RepairEnvironmentVariables,
    user: Option<RunAs>,
) -> RepairEnvironmentVariables {
    let Some(user) = user else {
        return environment;
    };
    match User::from_uid(Uid::from_raw(user.uid)) {
        Ok(Some(known)) => environment
            .with_variable("HOME", known.dir)
            .with_variable("USER", &known.name)
            .with_variable("LOGNAME", known.name),
        // Without a home directory, one is created.
        Ok(None) | Err(_) => environment.with_variable("HOME", ""),
    }
}
