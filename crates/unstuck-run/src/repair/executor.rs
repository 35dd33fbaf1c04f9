//! Runs one approved repair after the other.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Uid, User};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use unstuck_core::guard::Approved;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::Environment;
use unstuck_repair::lock::ProjectLock;
use unstuck_repair::place::Root;
use unstuck_repair::sandbox::wire::{CheckedFile, End, Order, RunAs};
use unstuck_repair::sandbox::{
    Before, Demand, Effective, GitEffects, GitFolders, Rights, SANDBOX, Scratch, surroundings,
    user_of,
};

use crate::process::{
    Discard, Ended, Inherits, Limits, ReaperProgram, Sink, Spec, Status, Stdin, Stop, Supervisor,
};

use super::error::{RepairError, While};
use super::job::Job;
use super::link::{Failure, Link, Told};
use super::ran::Ran;

/// How often another repair of the project is looked for while one waits for it.
const PACE: Duration = Duration::from_millis(50);
/// Between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);
const KILLED: i32 = 9;

/// Runs repairs.
#[derive(Debug)]
pub struct Executor {
    supervisor: Supervisor,
    program: PathBuf,
    state: PathBuf,
    temporary: PathBuf,
    redactor: Redactor,
}

impl Executor {
    /// Runs repairs with the help of a program that is reaper and sandbox alike. `state` is unstuck's own folder,
    /// `temporary` one for temporary files; the redactor knows what must not be shown.
    pub fn start(
        program: &ReaperProgram,
        state: &Path,
        temporary: &Path,
        redactor: Redactor,
    ) -> Result<Self, RepairError> {
        Ok(Self {
            supervisor: Supervisor::start(program)?,
            program: program.program.clone(),
            state: state.to_owned(),
            temporary: temporary.to_owned(),
            redactor,
        })
    }

    /// Runs a repair until nothing of it is left. Waits for another one of the same project, as long as this one may
    /// take.
    pub async fn run(
        &mut self,
        job: &Job<'_>,
        stop: watch::Receiver<Stop>,
    ) -> Result<Ran, RepairError> {
        self.run_with(job, &mut Discard, stop).await
    }

    /// The same, with somebody who sees the output as it comes. It is not redacted then.
    pub async fn run_with(
        &mut self,
        job: &Job<'_>,
        sink: &mut dyn Sink,
        stop: watch::Receiver<Stop>,
    ) -> Result<Ran, RepairError> {
        if job.is_out_of_place() {
            return Err(RepairError::Refused {
                reason: "nobody approved this command; it can only be previewed".to_owned(),
            });
        }
        let _lock = self.lock(job, &stop).await?;
        let first = self.attempt(job, None, sink, stop.clone());
        let (ended, told) = first.await?;
        let Some(failure) = told.failure else {
            return self.ran(&ended, told);
        };
        if !(failure.without_namespaces && job.strict_profile().demand == Demand::BestEffort) {
            return Err(failure.into());
        }
        let obstacle = format!("cannot {}: {}", failure.doing, failure.why);
        let second = self.attempt(job, Some(obstacle), sink, stop);
        let (ended, told) = second.await?;
        match told.failure {
            Some(failure) => Err(failure.into()),
            None => self.ran(&ended, told),
        }
    }

    /// What a sandbox can do on this machine for the user of a project, tried for real.
    pub async fn survey(
        &mut self,
        project: &Path,
        environment: &Environment,
    ) -> Result<Effective, RepairError> {
        let user = user_of(project);
        let project = Scratch::make(&self.temporary, user).to("make a folder")?;
        let system = |error: &dyn std::fmt::Display| RepairError::Refused {
            reason: error.to_string(),
        };
        let root = Root::open(project.path()).map_err(|error| system(&error))?;
        let folder = root.folder(None).map_err(|error| system(&error))?;
        let nothing = Approved::by_person("true").map_err(|error| system(&error))?;
        let mut job = Job::new(&nothing, &root, &folder, environment.clone());
        job.profile.demand = Demand::BestEffort;
        // Not what root may do with entries that only work on files.
        job.profile.rights = Rights::Own;
        let (_keep, stop) = watch::channel(Stop::No);
        Ok(self.run(&job, stop).await?.sandbox)
    }

    async fn lock(
        &self,
        job: &Job<'_>,
        stop: &watch::Receiver<Stop>,
    ) -> Result<ProjectLock, RepairError> {
        let until = Instant::now() + job.timeout;
        loop {
            let lock = ProjectLock::take(&self.state, job.root.path());
            if let Some(lock) = lock.to("lock the project")? {
                return Ok(lock);
            }
            if Instant::now() >= until || *stop.borrow() != Stop::No {
                return Err(RepairError::Busy);
            }
            sleep(PACE).await;
        }
    }

    async fn attempt(
        &mut self,
        job: &Job<'_>,
        obstacle: Option<String>,
        sink: &mut dyn Sink,
        stop: watch::Receiver<Stop>,
    ) -> Result<(Ended, Told), RepairError> {
        let run_as = user_of(job.root.path());
        let temporary = self.temporary_beside(job.root.path());
        let scratch = Scratch::make(temporary, run_as).to("make a private folder")?;
        let environment = job.environment.clone();
        let environment = environment.without_links_into(job.root.path());
        let environment = for_user(environment, run_as).pairs();
        let order = Order {
            profile: self.own_hidden(job),
            surroundings: surroundings(&environment, scratch.path(), run_as),
            obstacle,
            unbounded: false,
            run_as,
            folder: job.folder.relative().to_owned(),
            steps: job.steps(),
            git: GitFolders::look(job.root),
            checked: checked(job, &scratch).to("keep the checked files")?,
            copies: Vec::new(),
        };
        let before = (order.profile.overlay.is_none())
            .then(|| Before::look(job.root, order.kept(), order.git.clone(), false));
        let (link, theirs) = Link::open(&order, job).to("reach the sandbox")?;
        let spec = self.spec(job, environment);
        let mut stdin = Stdin::handed_over(theirs);
        let ended = self.supervisor.run(&spec, &mut stdin, sink, stop).await?;
        drop(stdin);
        let mut told = link.told().to("hear of the sandbox")?;
        // The sandbox does this itself, unless it was killed. Then git's folder may be its private copy or not.
        if let Some(before) = before.filter(|_| !told.is_cleared) {
            let effects = GitEffects::of(&order.steps);
            told.planted
                .extend(before.restore(job.root, effects, false));
        }
        Ok((ended, told))
    }

    /// A folder for temporary files that the command cannot write to.
    fn temporary_beside(&self, root: &Path) -> &Path {
        let real = self.temporary.canonicalize();
        match real.is_ok_and(|real| real.starts_with(root)) {
            true => &self.state,
            false => &self.temporary,
        }
    }

    /// The profile of a job, in which our own state is hidden.
    fn own_hidden(&self, job: &Job<'_>) -> unstuck_repair::sandbox::Profile {
        let mut profile = job.strict_profile();
        profile.own.push(self.state.clone());
        profile
    }

    fn spec(&self, job: &Job<'_>, environment: Vec<(OsString, OsString)>) -> Spec {
        Spec {
            inherits: Inherits::Nothing,
            set: environment,
            // The sandbox goes to the folder by its handle; until then it is somewhere that is always there.
            folder: Some(PathBuf::from("/")),
            limits: Limits {
                timeout: Some(job.timeout),
                idle_timeout: None,
                grace: GRACE,
            },
            ..Spec::new(&self.program).with([SANDBOX])
        }
    }

    fn ran(&self, ended: &Ended, told: Told) -> Result<Ran, RepairError> {
        if let Some(reason) = told.refusal {
            return Err(RepairError::Refused { reason });
        }
        // Without a word the processes of the sandbox were killed, by us or by somebody else.
        let Some(sandbox) = told.effective else {
            let is_ours = ended.stopped || ended.timed_out.is_some();
            return match is_ours {
                true => Ok(self.told(ended, &Status::Signaled(KILLED), Told::default(), unknown())),
                false => Err(silent(&ended.status)),
            };
        };
        let status = match (told.end, &ended.status) {
            (Some(End::Exited(code)), _) => Status::Exited(code),
            (Some(End::Signaled(signal)), _) => Status::Signaled(signal),
            (None, Status::Signaled(signal)) => Status::Signaled(*signal),
            (None, _) => Status::Signaled(KILLED),
        };
        let rest = Told {
            effective: None,
            refusal: None,
            ..told
        };
        Ok(self.told(ended, &status, rest, sandbox))
    }

    fn told(&self, ended: &Ended, status: &Status, told: Told, sandbox: Effective) -> Ran {
        Ran {
            status: status.clone(),
            duration: ended.duration,
            timed_out: ended.timed_out.is_some(),
            stopped: ended.stopped,
            stdout: self.redactor.redact(&ended.stdout.text()).into_owned(),
            stderr: self.redactor.redact(&ended.stderr.text()).into_owned(),
            sandbox,
            programs: told.programs,
            left: told.left.max(ended.left),
            survivors: ended.survivors,
            planted: told.planted,
            discarded: told.discarded,
            overtaken: told.overtaken,
        }
    }
}

/// The files that decide what the command does, with private copies of what was checked.
fn checked(job: &Job<'_>, scratch: &Scratch) -> io::Result<Vec<CheckedFile>> {
    let mut files = Vec::new();
    for (number, file) in job.checked.iter().enumerate() {
        let copy = match file.is_written {
            true => None,
            false => Some(scratch.keep(number, &file.bytes, file.is_program)?),
        };
        files.push(CheckedFile {
            path: PathBuf::from(&file.path),
            sha256: file.sha256(),
            copy,
        });
    }
    Ok(files)
}

impl From<Failure> for RepairError {
    fn from(failure: Failure) -> Self {
        Self::SetUp {
            doing: failure.doing,
            why: failure.why,
        }
    }
}

fn unknown() -> Effective {
    Effective::none("it was stopped before the sandbox stood")
}

fn silent(status: &Status) -> RepairError {
    RepairError::SetUp {
        doing: "hear of the sandbox".to_owned(),
        why: format!("its process ended with {}", status.code()),
    }
}

/// The environment for the user that the command runs as, where that is another one than ours.
fn for_user(environment: Environment, user: Option<RunAs>) -> Environment {
    let Some(user) = user else {
        return environment;
    };
    match User::from_uid(Uid::from_raw(user.uid)) {
        Ok(Some(known)) => environment
            .with("HOME", known.dir)
            .with("USER", &known.name)
            .with("LOGNAME", known.name),
        // Without a home one is made for it.
        Ok(None) | Err(_) => environment.with("HOME", ""),
    }
}
