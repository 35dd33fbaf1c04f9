//! Measures the sandbox overhead: `/bin/true` in the sandbox against a bare one, by phase.
#![expect(
    clippy::disallowed_methods,
    reason = "the benchmark's own temporary directory"
)]

use std::path::Path;

use anyhow::{Context, Result};
use tokio::sync::watch;
use unstuck_core::command_policy::ApprovedCommand;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::project_dir::{ProjectRoot, RepairWorkingDir};
use unstuck_repair::sandbox::SandboxMode;
use unstuck_run::process::{AttemptStopRequest, ReaperProgram};
use unstuck_run::repair_execution::{RepairExecutor, RepairJob};

use crate::measure::{ROUNDS, Samples, now};
use crate::startup::millis;
use crate::table::{FigureTable, FigureTarget};

/// Repairs per round.
const REPAIRS: usize = 20;

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    table.section("10. Sandboxed /bin/true")?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure_repairs(table))
}

async fn measure_repairs(table: &mut FigureTable) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = RepairFixture::new(folder.path())?;
    let mut executor = place.executor()?;
    let what = executor
        .probe_sandbox(place.root.path(), &place.environment)
        .await?;
    table.note(&format!("confinement on this machine: {}", what.summary()))?;
    let [mut bare, mut off, mut whole] = [(); 3].map(|()| Samples::default());
    for _ in 0..ROUNDS {
        let [mut first, mut second, mut third] = [(); 3].map(|()| Samples::default());
        for _ in 0..REPAIRS {
            first.push(bare_child().await?);
            second.push(place.repair(&mut executor, SandboxMode::Off).await?);
            third.push(place.repair(&mut executor, SandboxMode::BestEffort).await?);
        }
        bare.push(first.median());
        off.push(second.median());
        whole.push(third.median());
    }
    table.row(
        "tokio's output()",
        &bare.map(millis),
        "ms",
        FigureTarget::None,
    )?;
    table.row("sandbox off", &off.map(millis), "ms", FigureTarget::None)?;
    table.row("sandboxed", &whole.map(millis), "ms", FigureTarget::None)?;
    table.row(
        "  sandboxed ÷ bare",
        &whole.ratio_to(&bare),
        "×",
        FigureTarget::None,
    )?;
    table.row(
        "  sandboxed ÷ sandbox off",
        &whole.ratio_to(&off),
        "×",
        FigureTarget::None,
    )
}

async fn bare_child() -> Result<f64> {
    let begin = now();
    tokio::process::Command::new("/bin/true").output().await?;
    Ok(begin.elapsed().as_secs_f64())
}

/// A project to repair.
struct RepairFixture {
    root: ProjectRoot,
    folder: RepairWorkingDir,
    environment: RepairEnvironmentVariables,
    approved: ApprovedCommand,
    state: std::path::PathBuf,
}

impl RepairFixture {
    fn new(folder: &Path) -> Result<Self> {
        let [project, home, state] = ["project", "home", "state"].map(|name| folder.join(name));
        for path in [&project, &home, &state] {
            std::fs::create_dir(path)?;
        }
        let root = ProjectRoot::open(&project)?;
        let owner = [("HOME".into(), home.into_os_string())];
        Ok(Self {
            folder: root.open_working_dir(None)?,
            environment: RepairEnvironmentVariables::from_owner(owner, root.path(), &[]),
            approved: ApprovedCommand::by_person("/bin/true").context("not approved")?,
            root,
            state,
        })
    }

    fn executor(&self) -> Result<RepairExecutor> {
        let redactor = Redactor::new([]);
        let temporary = std::env::temp_dir();
        Ok(RepairExecutor::start(
            &ReaperProgram::own(),
            &self.state,
            &temporary,
            redactor,
        )?)
    }

    async fn repair(&self, executor: &mut RepairExecutor, demand: SandboxMode) -> Result<f64> {
        let environment = self.environment.clone();
        let mut job = RepairJob::new(&self.approved, &self.root, &self.folder, environment);
        job.profile.mode = demand;
        let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
        let begin = now();
        executor.run(&job, stop).await?;
        Ok(begin.elapsed().as_secs_f64())
    }
}
