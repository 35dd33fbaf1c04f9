//! Runs what may run, confined as the owner wants it.

use std::path::Path;

use tokio::sync::watch;
use tokio::time::Instant;
use unstuck_core::RunId;
use unstuck_core::event::RepairConditions;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::Environment;
use unstuck_repair::sandbox::wire::Steps;
use unstuck_repair::sandbox::{
    Confinement, Demand, Effective, Network, Reach, git_effects_shown, reach,
};

use super::kept_tree::{self, Moment};
use super::repairer::Repairer;
use super::survey::Survey;
use super::weighing::Allowed;
use crate::process::{ReaperProgram, Stop};
use crate::repair::{Executor, Job, Ran, RepairError};

impl Repairer<'_> {
    /// Runs it until nothing of it is left.
    pub(in crate::drive) async fn run(
        &self,
        allowed: &Allowed,
        run: &RunId,
        stop: watch::Receiver<Stop>,
    ) -> Result<Ran, RepairError> {
        self.workshop.newest.set(Some(Instant::now()));
        let (terms, workshop) = (self.terms, self.workshop);
        let environment = self.environment(allowed.root.path());
        let environment = environment.with("UNSTUCK_RUN", run.as_str());
        let mut job = Job::new(
            &allowed.approved,
            &allowed.root,
            &allowed.folder,
            environment,
        );
        job.timeout = allowed.timeout;
        job.checked.clone_from(&allowed.checked);
        job.profile.demand = self.demand();
        job.profile.network = match terms.network {
            true => Network::On,
            false => Network::Off,
        };
        job.profile.writable.clone_from(&terms.write_paths);
        job.profile.own.extend_from_slice(workshop.own);
        // What it wrote is redacted with all that is known to be secret before it is told.
        let redactor = Redactor::new([]);
        let temporary = std::env::temp_dir();
        let program = ReaperProgram::own();
        let mut executor = Executor::start(&program, workshop.state, &temporary, redactor)?;
        executor.run(&job, stop).await
    }

    /// The variables that a repair sees.
    fn environment(&self, root: &Path) -> Environment {
        let owner = self.workshop.environment.iter().cloned();
        Environment::rebuilt(owner, root, &self.terms.env_keep)
    }

    /// What is asked of the sandbox: all of it, where it was there when the repair was decided on or shown to a person.
    fn demand(&self) -> Demand {
        let found = self.workshop.surveyed.get();
        let is_complete = found.is_some_and(|found| found.confinement == Confinement::Full);
        match self.terms.sandbox {
            Demand::BestEffort if is_complete && !self.terms.accepts_incomplete => Demand::Required,
            demand => demand,
        }
    }

    /// Finds out what a sandbox can do here, once in a process.
    pub(in crate::drive) async fn survey(&self) {
        if self.workshop.surveyed.get().is_some() {
            return;
        }
        let found = match self.terms.sandbox {
            Demand::Off => Effective::none("it is switched off"),
            Demand::Required | Demand::BestEffort => Box::pin(self.surveyed()).await,
        };
        // Whoever was faster has found the same.
        let _ = self.workshop.surveyed.set(found);
    }

    async fn surveyed(&self) -> Effective {
        let (workshop, temporary) = (self.workshop, std::env::temp_dir());
        let remembered = Survey::new(workshop.state, self.project);
        if let Some(found) = remembered.read() {
            return found;
        }
        let program = ReaperProgram::own();
        let redactor = Redactor::new([]);
        let executor = Executor::start(&program, workshop.state, &temporary, redactor);
        let found = match executor {
            Ok(mut executor) => {
                let environment = self.environment(self.project);
                executor.survey(self.project, &environment).await
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(found) => {
                remembered.keep(&found);
                found
            }
            Err(error) => Effective::none(format!("it could not be tried: {error}")),
        }
    }

    /// Under which conditions a command would run, for whoever has to approve it.
    pub(in crate::drive) fn conditions(&self, command: &str) -> RepairConditions {
        let found = self.workshop.surveyed.get();
        let (mut sandbox, mut missing) = match found {
            Some(found) => (found.confinement.name(), found.missing.clone()),
            None => ("unknown", vec!["it was not tried".to_owned()]),
        };
        if reach(command) == Reach::Looks && sandbox == "full" {
            sandbox = "partial";
            missing.push("it looks into other processes, which no complete sandbox allows".into());
        }
        let variables = self.environment(self.project).pairs().into_iter();
        let variables = variables.map(|(name, _)| name.to_string_lossy().into_owned());
        RepairConditions {
            sandbox: sandbox.to_owned(),
            missing,
            network: self.terms.network,
            variables: variables.chain(["UNSTUCK_RUN".to_owned()]).collect(),
            effects: git_effects_shown(&Steps::of(command)),
        }
    }

    /// Keeps the work tree as it is at this moment; nothing where the project is no git repository.
    pub(in crate::drive) async fn keep_tree(
        &self,
        run: &RunId,
        repair: &str,
        moment: Moment,
    ) -> Option<String> {
        kept_tree::keep(self.project, self.workshop.state, run, repair, moment).await
    }
}
