//! What it costs to confine a repair: `/bin/true` in the sandbox over a bare one, and where the time goes.

use std::path::Path;

use anyhow::{Context, Result};
use tokio::sync::watch;
use unstuck_core::guard::Approved;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::Environment;
use unstuck_repair::place::{Folder, Root};
use unstuck_repair::sandbox::Demand;
use unstuck_run::process::{ReaperProgram, Stop};
use unstuck_run::repair::{Executor, Job};

use crate::measure::{ROUNDS, Samples, moment};
use crate::starting::millis;
use crate::table::{Table, Target};

/// So many repairs a round.
const REPAIRS: usize = 20;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    table.section("10. Confining /bin/true")?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(repairs(table))
}

async fn repairs(table: &mut Table) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = Place::new(folder.path())?;
    let mut executor = place.executor()?;
    let what = executor
        .survey(place.root.path(), &place.environment)
        .await?;
    table.note(&format!("the sandbox of this machine is {}", what.line()))?;
    let [mut bare, mut off, mut whole] = [(); 3].map(|()| Samples::default());
    for _ in 0..ROUNDS {
        let [mut first, mut second, mut third] = [(); 3].map(|()| Samples::default());
        for _ in 0..REPAIRS {
            first.push(bare_child().await?);
            second.push(place.repair(&mut executor, Demand::Off).await?);
            third.push(place.repair(&mut executor, Demand::BestEffort).await?);
        }
        bare.push(first.median());
        off.push(second.median());
        whole.push(third.median());
    }
    table.row("tokio's output()", &bare.map(millis), "ms", Target::Open)?;
    table.row("switched off", &off.map(millis), "ms", Target::Open)?;
    table.row("in the sandbox", &whole.map(millis), "ms", Target::Open)?;
    table.row("  over bare", &whole.over(&bare), "×", Target::Open)?;
    table.row("  over switched off", &whole.over(&off), "×", Target::Open)
}

async fn bare_child() -> Result<f64> {
    let begin = moment();
    tokio::process::Command::new("/bin/true").output().await?;
    Ok(begin.elapsed().as_secs_f64())
}

/// A project to repair.
struct Place {
    root: Root,
    folder: Folder,
    environment: Environment,
    approved: Approved,
    state: std::path::PathBuf,
}

impl Place {
    fn new(folder: &Path) -> Result<Self> {
        let [project, home, state] = ["project", "home", "state"].map(|name| folder.join(name));
        for path in [&project, &home, &state] {
            std::fs::create_dir(path)?;
        }
        let root = Root::open(&project)?;
        let owner = [("HOME".into(), home.into_os_string())];
        Ok(Self {
            folder: root.folder(None)?,
            environment: Environment::rebuilt(owner, root.path(), &[]),
            approved: Approved::by_person("/bin/true").context("not approved")?,
            root,
            state,
        })
    }

    fn executor(&self) -> Result<Executor> {
        let redactor = Redactor::new([]);
        let temporary = std::env::temp_dir();
        Ok(Executor::start(
            &ReaperProgram::own(),
            &self.state,
            &temporary,
            redactor,
        )?)
    }

    async fn repair(&self, executor: &mut Executor, demand: Demand) -> Result<f64> {
        let environment = self.environment.clone();
        let mut job = Job::new(&self.approved, &self.root, &self.folder, environment);
        job.profile.demand = demand;
        let (_keep, stop) = watch::channel(Stop::No);
        let begin = moment();
        executor.run(&job, stop).await?;
        Ok(begin.elapsed().as_secs_f64())
    }
}
