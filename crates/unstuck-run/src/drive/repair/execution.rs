//! Runs what may run, confined as the owner wants it.

use tokio::sync::watch;
use tokio::time::Instant;
use unstuck_core::RunId;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::Environment;
use unstuck_repair::sandbox::Network;

use super::kept_tree::{self, Moment};
use super::repairer::Repairer;
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
        let owner = workshop.environment.iter().cloned();
        let environment = Environment::rebuilt(owner, allowed.root.path(), &terms.env_keep)
            .with("UNSTUCK_RUN", run.as_str());
        let mut job = Job::new(
            &allowed.approved,
            &allowed.root,
            &allowed.folder,
            environment,
        );
        job.timeout = allowed.timeout;
        job.profile.demand = terms.sandbox;
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
