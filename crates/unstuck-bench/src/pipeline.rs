//! Measures the overhead of a pipeline with many roles, and of its snapshots.
#![expect(
    clippy::disallowed_methods,
    reason = "the benchmark's own temporary directory"
)]

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::measure::{ROUNDS, Samples, now};
use crate::resources::{PeakMemory, cpu_of_children, watch_memory};
use crate::startup::{millis, program_command, sibling_program};
use crate::table::{FigureTable, FigureTarget};

/// The argument for a process that only starts the commands.
pub(crate) const BASELINE_ARG: &str = "bare";

/// Number of waves of roles; each role needs one of the wave before.
const WAVES: usize = 10;
const ROLES: usize = 20;
const PARALLEL: usize = 8;
/// Snapshots cost more than all else, so fewer waves suffice.
const WAVES_WITH_GIT: usize = 2;
/// Command of each role.
const COMMAND: [&str; 3] = ["/bin/echo", "It", "works"];
/// Number of files in the work tree for snapshots.
const FILES: usize = 2000;

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    let attempts = WAVES * ROLES;
    table.section(&format!(
        "9. Pipeline of {attempts} roles, {PARALLEL} in parallel"
    ))?;
    let Some(program) = sibling_program("unstuck").filter(|path| path.exists()) else {
        return table.note("unstuck is not built: pipeline skipped");
    };
    measure_cpu(table, &program)?;
    measure_memory(table, &program)?;
    measure_snapshots(table, &program)
}

/// Starts the commands like any program that captures their output.
pub(crate) fn run_baseline() -> Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(start_all())
}

async fn start_all() -> Result<()> {
    let mut running = FuturesUnordered::new();
    for _ in 0..WAVES * ROLES {
        if running.len() == PARALLEL {
            running.next().await.transpose()?;
        }
        let [program, arguments @ ..] = COMMAND;
        let mut command = tokio::process::Command::new(program);
        running.push(command.args(arguments).output());
    }
    while let Some(ended) = running.next().await {
        ended?;
    }
    Ok(())
}

fn measure_cpu(table: &mut FigureTable, program: &Path) -> Result<()> {
    let own = std::env::current_exe()?;
    let (mut ours, mut theirs) = (RunCost::default(), RunCost::default());
    // None is removed before the end: some file systems are slow to create files right after deletions.
    let projects = PipelineProject::for_rounds(WAVES, "")?;
    for project in &projects {
        theirs.add_run(program_command(&own).arg(BASELINE_ARG))?;
        ours.add_run(&mut project.run(program))?;
    }
    let each = |samples: &Samples| samples.map(|seconds| millis(seconds) / (WAVES * ROLES) as f64);
    let more = each(&ours.cpu.minus(&theirs.cpu));
    table.row(
        "commands alone, CPU time each",
        &each(&theirs.cpu),
        "ms",
        FigureTarget::None,
    )?;
    table.row(
        "unstuck run with reapers and commands, CPU time each",
        &each(&ours.cpu),
        "ms",
        FigureTarget::None,
    )?;
    table.row(
        "  overhead over bare",
        &more,
        "ms",
        FigureTarget::AtMost(5.0),
    )?;
    table.row(
        "commands alone, wall time each",
        &each(&theirs.time),
        "ms",
        FigureTarget::None,
    )?;
    table.row(
        "unstuck run, wall time each",
        &each(&ours.time),
        "ms",
        FigureTarget::None,
    )
}

fn measure_memory(table: &mut FigureTable, program: &Path) -> Result<()> {
    let (mut alone, mut together) = (Samples::default(), Samples::default());
    let projects = PipelineProject::for_rounds(WAVES, "")?;
    for project in &projects {
        let PeakMemory { peak, shared } =
            watch_memory(silence_output(&mut project.run(program)).spawn()?)?;
        alone.push(peak);
        together.push(shared);
    }
    table.row(
        "peak memory of unstuck",
        &alone,
        "MB",
        FigureTarget::AtMost(60.0),
    )?;
    table.row(
        "  with its reapers, shared memory counted once",
        &together,
        "MB",
        FigureTarget::AtMost(60.0),
    )
}

/// Measures the same in a repository, with and without snapshots around each attempt.
fn measure_snapshots(table: &mut FigureTable, program: &Path) -> Result<()> {
    if !git(Path::new("."), &["--version"]).is_ok_and(|works| works) {
        return table.note("git is not installed: snapshots skipped");
    }
    let (mut with, mut without) = (RunCost::default(), RunCost::default());
    let (on, off) = ("snapshots = true", "snapshots = false");
    let projects = (
        PipelineProject::for_rounds(WAVES_WITH_GIT, on)?,
        PipelineProject::for_rounds(WAVES_WITH_GIT, off)?,
    );
    for (on, off) in projects.0.iter().zip(&projects.1) {
        for (project, cost) in [(on, &mut with), (off, &mut without)] {
            project.init_repository()?;
            cost.add_run(&mut project.run(program))?;
        }
    }
    let each = |ours: &Samples, theirs: &Samples| {
        let more = ours.minus(theirs);
        more.map(|seconds| millis(seconds) / (WAVES_WITH_GIT * ROLES) as f64)
    };
    let processor = each(&with.cpu, &without.cpu);
    let time = each(&with.time, &without.time);
    let title = format!("two snapshots of {FILES} files per attempt");
    table.row(&title, &processor, "ms CPU", FigureTarget::None)?;
    table.row("  wall time", &time, "ms", FigureTarget::None)
}

/// The cost of some runs in seconds.
#[derive(Default)]
struct RunCost {
    cpu: Samples,
    time: Samples,
}

impl RunCost {
    fn add_run(&mut self, command: &mut Command) -> Result<()> {
        let (before, begin) = (cpu_of_children()?, now());
        let output = silence_output(command).output()?;
        ensure!(
            output.status.success(),
            "{command:?} failed with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        self.time.push(begin.elapsed().as_secs_f64());
        self.cpu.push(cpu_of_children()? - before);
        Ok(())
    }
}

/// A directory with a pipeline.
struct PipelineProject(tempfile::TempDir);

impl PipelineProject {
    /// Returns one project per round.
    fn for_rounds(waves: usize, settings: &str) -> Result<Vec<Self>> {
        (0..ROUNDS).map(|_| Self::new(waves, settings)).collect()
    }

    fn new(waves: usize, settings: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let project = folder.path().join("project");
        std::fs::create_dir(&project)?;
        std::fs::write(
            project.join("unstuck.toml"),
            pipeline_config(waves, settings)?,
        )?;
        Ok(Self(folder))
    }

    fn init_repository(&self) -> Result<()> {
        let project = self.0.path().join("project");
        for number in 0..FILES {
            let folder = project.join(format!("src/{}", number % 50));
            std::fs::create_dir_all(&folder)?;
            let text = format!("// File {number}.\n").repeat(100);
            std::fs::write(folder.join(format!("{number}.rs")), text)?;
        }
        ensure!(git(&project, &["init", "--quiet"])?, "git init failed");
        ensure!(git(&project, &["add", "."])?, "git add failed");
        Ok(())
    }

    fn run(&self, program: &Path) -> Command {
        let mut command = program_command(program);
        command
            .args(["run", "--quiet"])
            .current_dir(self.0.path().join("project"))
            .env("UNSTUCK_STORE", self.0.path().join("history.db"))
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .env("XDG_CONFIG_HOME", self.0.path().join("config"));
        command
    }
}

fn pipeline_config(waves: usize, settings: &str) -> Result<String> {
    let mut text = format!("[run]\nparallel = {PARALLEL}\n{settings}\n");
    for wave in 0..waves {
        for role in 0..ROLES {
            let needs = match wave {
                0 => String::new(),
                _ => format!("needs = [\"role-{}-{role}\"]\n", wave - 1),
            };
            writeln!(
                text,
                "[[role]]\nid = \"role-{wave}-{role}\"\nagent = \"command\"\ncommand = {COMMAND:?}\nprompt = \"Work\"\n{needs}"
            )?;
        }
    }
    Ok(text)
}

fn git(folder: &Path, arguments: &[&str]) -> Result<bool> {
    let mut git = program_command(Path::new("git"));
    let git = git.current_dir(folder).args(arguments);
    Ok(silence_output(git)
        .stderr(Stdio::null())
        .status()?
        .success())
}

fn silence_output(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}
